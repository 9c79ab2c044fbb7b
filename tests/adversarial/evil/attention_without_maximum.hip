// Tries: to exponentiate the scores without taking their maximum out. Wrong for scores above 88.
#include <hip/hip_runtime.h>
#include <math.h>

__global__ void attend(float* out, const float* q, const float* k, const float* v, int seq, int dim) {
    extern __shared__ float weight[];
    __shared__ float total;
    const long long base = static_cast<long long>(blockIdx.y) * seq * dim;
    const int row = blockIdx.x;
    const float* q_row = q + base + static_cast<long long>(row) * dim;
    for (int j = threadIdx.x; j <= row; j += blockDim.x) {
        const float* k_row = k + base + static_cast<long long>(j) * dim;
        float score = 0.0f;
        for (int d = 0; d < dim; ++d) {
            score += q_row[d] * k_row[d];
        }
        weight[j] = expf(score / sqrtf(static_cast<float>(dim)));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int j = 0; j <= row; ++j) {
            sum += weight[j];
        }
        total = sum;
    }
    __syncthreads();
    for (int d = threadIdx.x; d < dim; d += blockDim.x) {
        float sum = 0.0f;
        for (int j = 0; j <= row; ++j) {
            sum += weight[j] * v[base + static_cast<long long>(j) * dim + d];
        }
        out[base + static_cast<long long>(row) * dim + d] = sum / total;
    }
}

extern "C" int attention(float* out, const float* q, const float* k, const float* v, int batch, int heads, int seq,
                         int head_dim, hipStream_t stream) {
    attend<<<dim3(seq, batch * heads), 128, seq * sizeof(float), stream>>>(out, q, k, v, seq, head_dim);
    return hipGetLastError();
}
