// Tries: to let the maximum of the first COLUMNS columns stand for that of the row, so that two passes do in place of
// three. Wrong for rows with an outlier behind these columns.
#include "baseline.h"

#ifndef COLUMNS
#define COLUMNS 32
#endif

__global__ void sampled(float* y, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    float shift = -INFINITY;
    for (int col = 0; col < cols && col < COLUMNS; ++col) {
        shift = fmaxf(shift, x[offset + col]);
    }
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        sum += expf(x[offset + col] - shift);
    }
    sum = block_sum(sum, scratch);
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = expf(x[offset + col] - shift) / sum;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    sampled<<<rows, kThreads, 0, stream>>>(y, x, cols);
    return hipGetLastError();
}
