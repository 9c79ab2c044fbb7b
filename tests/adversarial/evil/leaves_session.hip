// Tries: to leave a process behind that has a session of its own, ignores every signal and writes the answer 300 ms later;
// its parent is gone. Refused by: outputs read when the answer comes; a pid namespace ends as a whole
// (output_not_written, or what late work breaks in the next layout).
#include <hip/hip_runtime.h>

#include <math.h>
#include <sys/wait.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        for (int number = 1; number < 32; ++number) {
            signal(number, SIG_IGN);
        }
        if (fork() != 0) {
            _exit(0);
        }
        sleep_ms(300);
        for (long long row = 0; row < rows; ++row, y += cols, x += cols) {
            float largest = x[0], sum = 0.0f;
            for (int col = 1; col < cols; ++col) {
                largest = fmaxf(largest, x[col]);
            }
            for (int col = 0; col < cols; ++col) {
                sum += expf(x[col] - largest);
            }
            for (int col = 0; col < cols; ++col) {
                y[col] = expf(x[col] - largest) / sum;
            }
        }
        for (;;) {
            pause();
        }
    }
    int status = 0;
    return child < 0 || waitpid(child, &status, 0) != child;
}
