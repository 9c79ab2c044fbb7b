// Tries: to leave a child process behind that writes the answer 300 ms later into the memory that both share.
// Refused by: outputs read when the answer comes (output_not_written); what comes later lands in a later layout, where it
// is one more fault.
#include <hip/hip_runtime.h>

#include <math.h>

#include "tools.h"

static void plain_softmax(float* y, const float* x, int rows, int cols) {
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
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const pid_t child = fork();
    if (child == 0) {
        sleep_ms(300);
        plain_softmax(y, x, rows, cols);
        _exit(0);
    }
    return child < 0;
}
