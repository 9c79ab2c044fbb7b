// Honest: 32 lanes a row, one pass for maximum and sum (online softmax), shuffles and rounded intrinsics. Must pass.
#include <hip/hip_runtime.h>

constexpr int kLanes = 32;
constexpr int kRowsPerBlock = 8;
constexpr float kLowest = -3.0e38f;  // finite: lanes without a value give exp(0) times a sum of 0

__global__ void online_in_lanes(float* y, const float* x, int rows, int cols) {
    const int lane = threadIdx.x % kLanes;
    const int row = blockIdx.x * kRowsPerBlock + threadIdx.x / kLanes;
    // Lanes beyond the last row compute it again, since all of them take part in the shuffles.
    const long long offset = static_cast<long long>(row < rows ? row : rows - 1) * cols;
    float largest = kLowest, sum = 0.0f;
    for (int col = lane; col < cols; col += kLanes) {
        const float value = x[offset + col];
        const float before = largest;
        largest = fmaxf(largest, value);
        sum = __fmaf_rn(sum, expf(before - largest), expf(value - largest));
    }
    for (int step = kLanes / 2; step > 0; step /= 2) {
        const float other = __shfl_xor(largest, step, kLanes);
        const float other_sum = __shfl_xor(sum, step, kLanes);
        const float both = fmaxf(largest, other);
        sum = __fmaf_rn(sum, expf(largest - both), other_sum * expf(other - both));
        largest = both;
    }
    const float factor = __frcp_rn(sum);
    if (row < rows) {
        for (int col = lane; col < cols; col += kLanes) {
            y[offset + col] = __fmul_rn(expf(x[offset + col] - largest), factor);
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
    online_in_lanes<<<blocks, kLanes * kRowsPerBlock, 0, stream>>>(y, x, rows, cols);
    return hipGetLastError();
}
