// Tries: to take every process that the judgement may have, so that the judge can start none and looks broken.
// Refused by: the judge has a pool that the others cannot fill, and a limit for each process (too_many_processes, crash,
// output_not_written); never void.
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    for (int count = 0; count < 4000; ++count) {
        const pid_t child = fork();
        if (child == 0) {
            sleep_ms(5000);
            _exit(0);
        }
        if (child < 0) {
            break;
        }
    }
    return 0;
}
