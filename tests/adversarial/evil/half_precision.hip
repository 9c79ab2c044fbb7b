// Tries: to compute an fp32 task in fp16. Refused by: the fp64 oracle and the baseline's own error (wrong_values,
// low_precision).
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__global__ void half_rows(float* y, const float* x, int rows, int cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    const long long offset = static_cast<long long>(row) * cols;
    float largest = x[offset];
    for (int col = 1; col < cols; ++col) {
        largest = fmaxf(largest, x[offset + col]);
    }
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) {
        sum += __half2float(__float2half(expf(x[offset + col] - largest)));
    }
    for (int col = 0; col < cols; ++col) {
        y[offset + col] = __half2float(__float2half(expf(x[offset + col] - largest) / sum));
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    half_rows<<<(rows + 63) / 64, 64, 0, stream>>>(y, x, rows, cols);
    return hipGetLastError();
}
