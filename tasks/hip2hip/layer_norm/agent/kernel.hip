// Layer normalisation over the rows of a matrix: one block per row, variance in two passes.
#include <hip/hip_runtime.h>

#include <math.h>

constexpr int kThreads = 256;

// Sum over the block, returned to every thread. `scratch` holds kThreads floats.
__device__ float block_sum(float value, float* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            scratch[threadIdx.x] += scratch[threadIdx.x + half];
        }
        __syncthreads();
    }
    const float result = scratch[0];
    __syncthreads();  // scratch is used again by the caller
    return result;
}

__global__ void layer_norm_kernel(float* y, float* mean, float* rstd, const float* x, const float* weight,
                                  const float* bias, int cols, float eps) {
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    const float* x_row = x + offset;
    float* y_row = y + offset;

    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        sum += x_row[col];
    }
    const float row_mean = block_sum(sum, scratch) / cols;

    float squares = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float centred = x_row[col] - row_mean;
        squares += centred * centred;
    }
    const float variance = block_sum(squares, scratch) / cols;
    const float row_rstd = 1.0f / sqrtf(variance + eps);

    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y_row[col] = (x_row[col] - row_mean) * row_rstd * weight[col] + bias[col];
    }
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = row_mean;
        rstd[blockIdx.x] = row_rstd;
    }
}

// y[rows][cols], mean[rows] and rstd[rows] of x[rows][cols] with weight[cols] and bias[cols].
extern "C" int layer_norm(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                          int rows, int cols, float eps, hipStream_t stream) {
    layer_norm_kernel<<<rows, kThreads, 0, stream>>>(y, mean, rstd, x, weight, bias, cols, eps);
    return hipGetLastError();
}
