// Honest: a block for each query, its scores in dynamic shared memory; only keys that the query may see are read, which
// is half of the work of the module in PyTorch. Must pass.
#include <hip/hip_runtime.h>

#include <math.h>

constexpr int kThreads = 128;

__device__ float reduce(float value, float* scratch, bool sums) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = scratch[threadIdx.x + half];
            scratch[threadIdx.x] = sums ? scratch[threadIdx.x] + other : fmaxf(scratch[threadIdx.x], other);
        }
        __syncthreads();
    }
    const float result = scratch[0];
    __syncthreads();
    return result;
}

__global__ void attend(float* out, const float* q, const float* k, const float* v, int seq, int head_dim) {
    extern __shared__ float scores[];
    __shared__ float scratch[kThreads];
    const int query = blockIdx.x;
    const long long head = static_cast<long long>(blockIdx.y) * seq * head_dim;
    const float* q_row = q + head + static_cast<long long>(query) * head_dim;
    const float scale = 1.0f / sqrtf(static_cast<float>(head_dim));
    float largest = -INFINITY;
    for (int key = threadIdx.x; key <= query; key += kThreads) {
        const float* k_row = k + head + static_cast<long long>(key) * head_dim;
        float dot = 0.0f;
        for (int i = 0; i < head_dim; ++i) {
            dot = fmaf(q_row[i], k_row[i], dot);
        }
        scores[key] = dot * scale;
        largest = fmaxf(largest, scores[key]);
    }
    largest = reduce(largest, scratch, false);
    float sum = 0.0f;
    for (int key = threadIdx.x; key <= query; key += kThreads) {
        scores[key] = expf(scores[key] - largest);
        sum += scores[key];
    }
    sum = reduce(sum, scratch, true);
    for (int i = threadIdx.x; i < head_dim; i += kThreads) {
        float value = 0.0f;
        for (int key = 0; key <= query; ++key) {
            value = fmaf(scores[key], v[head + static_cast<long long>(key) * head_dim + i], value);
        }
        out[head + static_cast<long long>(query) * head_dim + i] = value / sum;
    }
}

extern "C" int attention(float* out, const float* q, const float* k, const float* v, int batch, int heads, int seq,
                         int head_dim, hipStream_t stream) {
    attend<<<dim3(seq, batch * heads), kThreads, seq * sizeof(float), stream>>>(out, q, k, v, seq, head_dim);
    return hipGetLastError();
}
