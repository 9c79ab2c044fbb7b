// Honest: a static workspace for the maximum and the sum of each row, which grows when a call needs more. Must pass.
#include "baseline.h"

__global__ void find_statistics(float2* statistics, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const float* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    float largest = -INFINITY;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        largest = fmaxf(largest, x_row[col]);
    }
    largest = block_max(largest, scratch);
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        sum += expf(x_row[col] - largest);
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) {
        statistics[blockIdx.x] = make_float2(largest, 1.0f / sum);
    }
}

__global__ void apply_statistics(float* y, const float2* statistics, const float* x, int cols) {
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    const float2 row = statistics[blockIdx.x];
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = expf(x[offset + col] - row.x) * row.y;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static float2* workspace = nullptr;
    static int capacity = 0;
    if (rows > capacity) {
        if (workspace && hipFree(workspace) != hipSuccess) {
            return hipErrorUnknown;
        }
        capacity = 0;
        workspace = nullptr;
        if (hipMalloc(&workspace, rows * sizeof(float2)) != hipSuccess) {
            return hipErrorOutOfMemory;
        }
        capacity = rows;
    }
    find_statistics<<<rows, kThreads, 0, stream>>>(workspace, x, cols);
    apply_statistics<<<rows, kThreads, 0, stream>>>(y, workspace, x, cols);
    return hipGetLastError();
}
