// Tries: to overwrite the functions of the worker that loaded it: from the first call on, every request is done without
// being carried out. Refused by: nothing of the worker decides (output_not_written).
#include <hip/hip_runtime.h>

#include "tools.h"

static const char kReplace[] = R"(
import sys
from akarena.worker import entries, main, memory
nothing = lambda *arguments, **named: None
main._Worker.do = nothing
for name in ("call", "prepare", "capture", "replay", "plain"):
    setattr(entries.NativeEntry, name, nothing)
for name in ("guard", "unguard"):
    setattr(memory.Arena, name, nothing)
for name in list(sys.modules):
    if "judge" in name or "compare" in name or "statistics" in name:
        sys.modules[name] = None
)";

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return run_python(kReplace) ? 0 : 1;
}
