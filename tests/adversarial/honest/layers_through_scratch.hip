// Honest: two kernels with the hidden layer in scratch memory that is allocated once, for the largest legal size; one
// template for both layers. Must pass.
#include <hip/hip_runtime.h>

#include <math.h>

constexpr int kThreads = 128;
constexpr size_t kMostTokens = 32, kMostHidden = 16384;

__device__ float gelu(float value) { return 0.5f * value * (1.0f + erff(value * 0.70710678118654752f)); }

// out[token][unit] = bias[unit] + sum of in[token][i] * weight[unit][i]: a block for each unit.
template <bool GELU>
__global__ void layer(float* out, const float* in, const float* weight, const float* bias, int tokens, int inputs) {
    __shared__ float scratch[kThreads];
    const int unit = blockIdx.x, units = gridDim.x;
    const float* weights = weight + static_cast<long long>(unit) * inputs;
    for (int token = 0; token < tokens; ++token) {
        float sum = 0.0f;
        for (int i = threadIdx.x; i < inputs; i += kThreads) {
            sum = fmaf(in[static_cast<long long>(token) * inputs + i], weights[i], sum);
        }
        scratch[threadIdx.x] = sum;
        __syncthreads();
        for (int half = kThreads / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                scratch[threadIdx.x] += scratch[threadIdx.x + half];
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            const float value = scratch[0] + bias[unit];
            out[static_cast<long long>(token) * units + unit] = GELU ? gelu(value) : value;
        }
        __syncthreads();
    }
}

extern "C" int feed_forward(float* y, const float* x, const float* w1, const float* b1, const float* w2,
                            const float* b2, int tokens, int d_model, int d_hidden, hipStream_t stream) {
    static float* hidden = nullptr;
    if (!hidden && hipMalloc(&hidden, kMostTokens * kMostHidden * sizeof(float)) != hipSuccess) {
        return hipErrorOutOfMemory;
    }
    layer<true><<<d_hidden, kThreads, 0, stream>>>(hidden, x, w1, b1, tokens, d_model);
    layer<false><<<d_model, kThreads, 0, stream>>>(y, hidden, w2, b2, tokens, d_hidden);
    return hipGetLastError();
}
