// Honest: a static workspace, allocated on the first call and cleared on every call, in which blocks add up the sum of
// each row with atomics. Must pass.
#include "baseline.h"

constexpr int kRows = 1 << 18;

__global__ void find_max(float* largest, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const float* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    float value = -INFINITY;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        value = fmaxf(value, x_row[col]);
    }
    value = block_max(value, scratch);
    if (threadIdx.x == 0) {
        largest[blockIdx.x] = value;
    }
}

__global__ void add_up(float* sums, const float* largest, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const float* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    float sum = 0.0f;
    for (int col = blockIdx.y * kThreads + threadIdx.x; col < cols; col += gridDim.y * kThreads) {
        sum += expf(x_row[col] - largest[blockIdx.x]);
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) {
        atomicAdd(&sums[blockIdx.x], sum);
    }
}

__global__ void divide(float* y, const float* sums, const float* largest, const float* x, int cols) {
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = expf(x[offset + col] - largest[blockIdx.x]) / sums[blockIdx.x];
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static float* workspace = nullptr;
    if (!workspace && hipMalloc(&workspace, 2 * kRows * sizeof(float)) != hipSuccess) {
        return hipErrorOutOfMemory;
    }
    float* sums = workspace;
    float* largest = workspace + kRows;
    hipMemsetAsync(sums, 0, rows * sizeof(float), stream);
    find_max<<<rows, kThreads, 0, stream>>>(largest, x, cols);
    add_up<<<dim3(rows, 4), kThreads, 0, stream>>>(sums, largest, x, cols);
    divide<<<rows, kThreads, 0, stream>>>(y, sums, largest, x, cols);
    return hipGetLastError();
}
