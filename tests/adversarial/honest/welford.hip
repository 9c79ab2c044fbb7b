// Honest: mean and variance in one pass by Welford's method, merged over the block. Must pass.
#include <hip/hip_runtime.h>

constexpr int kThreads = 128;

struct Moments {
    float count, mean, squares;
};

__device__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) {
        return a;
    }
    const float apart = b.mean - a.mean;
    const float share = b.count / count;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

__global__ void welford(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                        int cols, float eps) {
    __shared__ float counts[kThreads], means[kThreads], squares[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    Moments own = {0.0f, 0.0f, 0.0f};
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = x[offset + col];
        own.count += 1.0f;
        const float before = value - own.mean;
        own.mean += before / own.count;
        own.squares += before * (value - own.mean);
    }
    const int thread = threadIdx.x;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        counts[thread] = own.count;
        means[thread] = own.mean;
        squares[thread] = own.squares;
        __syncthreads();
        if (thread < half) {
            own = merged(own, {counts[thread + half], means[thread + half], squares[thread + half]});
        }
        __syncthreads();
    }
    if (thread == 0) {
        means[0] = own.mean;
        squares[0] = 1.0f / sqrtf(own.squares / cols + eps);
        mean[blockIdx.x] = means[0];
        rstd[blockIdx.x] = squares[0];
    }
    __syncthreads();
    for (int col = thread; col < cols; col += kThreads) {
        y[offset + col] = (x[offset + col] - means[0]) * squares[0] * weight[col] + bias[col];
    }
}

extern "C" int layer_norm(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                          int rows, int cols, float eps, hipStream_t stream) {
    welford<<<rows, kThreads, 0, stream>>>(y, mean, rstd, x, weight, bias, cols, eps);
    return hipGetLastError();
}
