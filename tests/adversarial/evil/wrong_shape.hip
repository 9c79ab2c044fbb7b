// Tries: to give another shape or type, which a generous comparison would broadcast or convert: 0 one row for all, 1 the
// transposed matrix, 2 fp16, 3 fp64 of every other value.
// Refused by: every byte of the judge's own fp32 buffer counts (output_not_written, wrong_values).
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <math.h>

#ifndef SHAPE
#define SHAPE 0
#endif

__global__ void misshapen(float* y, const float* x, int rows, int cols) {
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= (SHAPE == 0 ? 1 : rows)) {
        return;
    }
    const float* from = x + static_cast<long long>(row) * cols;
    float largest = from[0], sum = 0.0f;
    for (int col = 1; col < cols; ++col) {
        largest = fmaxf(largest, from[col]);
    }
    for (int col = 0; col < cols; ++col) {
        sum += expf(from[col] - largest);
    }
    for (int col = 0; col < cols; ++col) {
        const long long place = SHAPE == 1 ? static_cast<long long>(col) * rows + row
                                           : static_cast<long long>(row) * cols + col;
        const float value = expf(from[col] - largest) / sum;
        if (SHAPE == 2) {
            reinterpret_cast<__half*>(y)[place] = __float2half(value);
        } else if (SHAPE == 3) {
            if (place % 2 == 0 && place + 1 < static_cast<long long>(rows) * cols) {
                y[place] = value;
                y[place + 1] = 0.0f;
            }
        } else {
            y[place] = value;
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    misshapen<<<(rows + 63) / 64, 64, 0, stream>>>(y, x, rows, cols);
    return hipGetLastError();
}
