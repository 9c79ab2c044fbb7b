// Tries: to write only places that look like a sample: the ends, every 97th element, and powers of two.
// Refused by: every element is compared where a call is checked (output_not_written).
#include <hip/hip_runtime.h>

#include <math.h>

__global__ void some(float* y, const float* x, int rows, int cols) {
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= rows) {
        return;
    }
    const long long offset = static_cast<long long>(row) * cols, count = static_cast<long long>(rows) * cols;
    float largest = x[offset], sum = 0.0f;
    for (int col = 1; col < cols; ++col) {
        largest = fmaxf(largest, x[offset + col]);
    }
    for (int col = 0; col < cols; ++col) {
        sum += expf(x[offset + col] - largest);
    }
    for (int col = 0; col < cols; ++col) {
        const long long place = offset + col;
        if (place % 97 == 0 || place + 1 == count || (place & (place - 1)) == 0) {
            y[place] = expf(x[place] - largest) / sum;
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    some<<<(rows + 63) / 64, 64, 0, stream>>>(y, x, rows, cols);
    return hipGetLastError();
}
