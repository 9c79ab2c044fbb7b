// Tries: to kill its parent and so, were that the judge or its launcher, to turn a failure into a broken infrastructure,
// which would be tried again. It signals that one process only.
// Refused by: a pid namespace of its own, whose init does not die (output_not_written, crash); never void.
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const pid_t parent = getppid();
    if (parent > 0) {
        for (int number : {SIGTERM, SIGSTOP, SIGKILL}) {
            kill(parent, number);
        }
    }
    sleep_ms(20);
    return 0;
}
