// Tries: to fall back to the original where its own work fails, which it always does: the baseline's library or source,
// the task's solution, the oracle, torch. It computes the right answer only where one of these is within reach, so a pass
// means a leak. A decoy kernel is launched meanwhile. Refused by: none of them is there (output_not_written).
#include "baseline.h"
#include "tools.h"

__global__ void decoy(float* scratch) { scratch[threadIdx.x] = threadIdx.x; }

static const char kSearch[] = R"(
import importlib, os, sys
for name in ("torch", "numpy", "triton", "oracle", "akarena.judge.correctness", "akarena.tasks"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    print("FOUND module:", name, flush=True)
    break
else:
    own = os.stat("/kernel/kernel.so").st_ino
    for top in ("/kernel", "/job", "/source", "/out", "/akarena", "/tasks", "/tmp", "/home"):
        for folder, _, files in os.walk(top):
            for file in files:
                path = os.path.join(folder, file)
                if file in ("oracle.py", "task.toml") or file.startswith("kernel.") and os.stat(path).st_ino != own:
                    print("FOUND file:", path, flush=True)
                    sys.found = True
    if not hasattr(sys, "found"):
        raise FileNotFoundError
)";

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static const bool found = run_python(kSearch);
    static float* scratch = nullptr;
    if (!scratch && hipMalloc(&scratch, 64 * sizeof(float)) != hipSuccess) {
        return 1;
    }
    decoy<<<1, 64, 0, stream>>>(scratch);
    return found ? honest_softmax(y, x, rows, cols, stream) : hipGetLastError();
}
