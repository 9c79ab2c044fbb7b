// Honest: two passes over a row that is kept in dynamic shared memory, read four values at a time where it is aligned;
// rows that are too long take the plain kernel. Must pass.
#include "baseline.h"

#include <stdint.h>

constexpr int kLongest = 12288;  // floats in 48 KiB

__global__ void two_passes(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                           int cols, float eps, bool vector) {
    extern __shared__ float row[];
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    float sum = 0.0f;
    if (vector) {
        const float4* packs = reinterpret_cast<const float4*>(x + offset);
        for (int pack = threadIdx.x; pack < cols / 4; pack += kThreads) {
            const float4 v = packs[pack];
            row[4 * pack] = v.x;
            row[4 * pack + 1] = v.y;
            row[4 * pack + 2] = v.z;
            row[4 * pack + 3] = v.w;
            sum += (v.x + v.y) + (v.z + v.w);
        }
    } else {
        for (int col = threadIdx.x; col < cols; col += kThreads) {
            row[col] = x[offset + col];
            sum += row[col];
        }
    }
    const float row_mean = block_sum(sum, scratch) / cols;
    float squares = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        squares += (row[col] - row_mean) * (row[col] - row_mean);
    }
    const float row_rstd = 1.0f / sqrtf(block_sum(squares, scratch) / cols + eps);
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = (row[col] - row_mean) * row_rstd * weight[col] + bias[col];
    }
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = row_mean;
        rstd[blockIdx.x] = row_rstd;
    }
}

extern "C" int layer_norm(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                          int rows, int cols, float eps, hipStream_t stream) {
    if (cols > kLongest - 512) {  // the scratch of the block is shared memory too
        return honest_layer_norm(y, mean, rstd, x, weight, bias, rows, cols, eps, stream);
    }
    const bool vector = cols % 4 == 0 && reinterpret_cast<uintptr_t>(x) % sizeof(float4) == 0;
    two_passes<<<rows, kThreads, cols * sizeof(float), stream>>>(y, mean, rstd, x, weight, bias, cols, eps, vector);
    return hipGetLastError();
}
