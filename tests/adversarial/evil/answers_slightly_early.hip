// Tries: to learn how long a replay takes and then to answer EARLY_US microseconds before its end, so that the rest is
// done by the time the judge's read comes to the device. The kernel is the baseline. CUDA.
// Gains nothing: the read is short beside a block, or the sample shows it (answered_early, wrong_when_timed).
#include "baseline.h"
#include "tools.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

static const char kHook[] = R"(
import time
from akarena.worker.entries import NativeEntry
capture = NativeEntry.capture
def learn(self, sets):
    capture(self, sets)
    self.durations = []
def early(self):
    began = time.perf_counter()
    self._runtime.launch_graph(self._graph, self._stream)
    if len(self.durations) < 2:
        self._runtime.synchronize()
        self.durations.append(time.perf_counter() - began)
        return
    until = began + min(self.durations) - early_us / 1e6
    while time.perf_counter() < until:
        pass
NativeEntry.capture, NativeEntry.replay = learn, early
)";

static const bool hooked = run_python("early_us = " TEXT(EARLY_US)) && run_python(kHook);

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return hooked ? honest_softmax(y, x, rows, cols, stream) : 1;
}
