// Honest work that on its second call, when the answer is written, sends signals to all that it can see: every other
// process, its group, and its init. Only its own namespace is there. Must pass.
#include "baseline.h"

#include <signal.h>

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int code = honest_softmax(y, x, rows, cols, stream);
    hipDeviceSynchronize();
    static int calls = 0;
    if (++calls == 2) {
        signal(SIGTERM, SIG_IGN);
        kill(-1, SIGKILL);
        kill(0, SIGTERM);
        kill(1, SIGKILL);
        kill(1, SIGHUP);
    }
    return code;
}
