// Tries: to get the variance as E[x^2] - E[x]^2 in fp32, in one pass. Useless where the mean is large beside the
// deviation.
#include "baseline.h"

__global__ void one_pass(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                         int cols, float eps) {
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    float sum = 0.0f, squares = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = x[offset + col];
        sum += value;
        squares += value * value;
    }
    const float row_mean = block_sum(sum, scratch) / cols;
    const float variance = fmaxf(block_sum(squares, scratch) / cols - row_mean * row_mean, 0.0f);
    const float row_rstd = 1.0f / sqrtf(variance + eps);
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = (x[offset + col] - row_mean) * row_rstd * weight[col] + bias[col];
    }
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = row_mean;
        rstd[blockIdx.x] = row_rstd;
    }
}

extern "C" int layer_norm(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                          int rows, int cols, float eps, hipStream_t stream) {
    one_pass<<<rows, kThreads, 0, stream>>>(y, mean, rstd, x, weight, bias, cols, eps);
    return hipGetLastError();
}
