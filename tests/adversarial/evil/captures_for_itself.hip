// Tries: to say that its work cannot be captured, so that both sides are run as plain calls, and then to replay a graph
// of its own where the worker asks for plain calls: only the baseline pays for launches. The kernel is the baseline. CUDA.
// Gains nothing: plain calls decide nothing where a launch is a large part of their time.
#include "baseline.h"
#include "tools.h"

static const char kHook[] = R"(
from akarena.worker import entries
NativeEntry = entries.NativeEntry
def refuse(self, sets):
    raise entries.NotCapturableError("so that both sides are run plainly")
def replay_own(self, sets):
    if not self._graph:
        self._graph = self._runtime.capture(self._stream, lambda: self._run_all(sets))
    self.replay()
NativeEntry.capture, NativeEntry.plain = refuse, replay_own
)";

static const bool hooked = run_python(kHook);

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return hooked ? honest_softmax(y, x, rows, cols, stream) : 1;
}
