// Honest: several template instances, chosen by the number of columns; the listed shapes are not among the choices, any
// size has one. Must pass.
#include "baseline.h"

// A thread keeps ITEMS values of the row.
template <int ITEMS>
__global__ void in_registers(float* y, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    float values[ITEMS];
    float largest = -INFINITY;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int col = item * kThreads + threadIdx.x;
        values[item] = col < cols ? x[offset + col] : -INFINITY;
        largest = fmaxf(largest, values[item]);
    }
    largest = block_max(largest, scratch);
    float sum = 0.0f;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        values[item] = expf(values[item] - largest);
        sum += values[item];
    }
    sum = block_sum(sum, scratch);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int col = item * kThreads + threadIdx.x;
        if (col < cols) {
            y[offset + col] = values[item] / sum;
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    if (cols <= kThreads) {
        in_registers<1><<<rows, kThreads, 0, stream>>>(y, x, cols);
    } else if (cols <= 2 * kThreads) {
        in_registers<2><<<rows, kThreads, 0, stream>>>(y, x, cols);
    } else if (cols <= 4 * kThreads) {
        in_registers<4><<<rows, kThreads, 0, stream>>>(y, x, cols);
    } else if (cols <= 16 * kThreads) {
        in_registers<16><<<rows, kThreads, 0, stream>>>(y, x, cols);
    } else {
        return honest_softmax(y, x, rows, cols, stream);
    }
    return hipGetLastError();
}
