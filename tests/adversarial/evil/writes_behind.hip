// Tries: to write one float behind its output. Refused by: canaries around each buffer, and on the cpu target an
// unreadable page (out_of_bounds, crash).
#include "baseline.h"

__global__ void write_behind(float* y, long long count) { y[count] = 1.0f; }

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int code = honest_softmax(y, x, rows, cols, stream);
    write_behind<<<1, 1, 0, stream>>>(y, static_cast<long long>(rows) * cols);
    return code;
}
