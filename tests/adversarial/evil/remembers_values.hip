// Tries: to recognise an input by a hash of 16 of its values, and to hand out the stored answer; where the hash is new
// it hands out the stored answer too, since it trusts that a benchmark uses the same values again.
// Refused by: fresh values on every call (wrong_values).
#include <hip/hip_runtime.h>

#include "tools.h"

__device__ unsigned long long hashes[2];  // of the stored answer, of the current input
__device__ int hits;

__global__ void sample(const float* x, long long count, int which) {
    unsigned long long hash = 1469598103934665603ull;
    for (int i = 0; i < 16; ++i) {
        unsigned int bits;
        memcpy(&bits, &x[count / 16 * i], sizeof bits);
        hash = (hash ^ bits) * 1099511628211ull;
    }
    hashes[which] = hash;
    hits += which == 1 && hashes[0] == hash;
}

__global__ void answer(float* y, const float* x, int cols) {
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    softmax_row(y + offset, x + offset, cols);
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static float* stored = nullptr;
    static int stored_rows = 0, stored_cols = 0;
    const long long count = static_cast<long long>(rows) * cols;
    if (rows != stored_rows || cols != stored_cols) {
        if (stored) {
            hipFree(stored);
        }
        if (hipMalloc(&stored, count * sizeof(float)) != hipSuccess) {
            return 1;
        }
        stored_rows = rows;
        stored_cols = cols;
        sample<<<1, 1, 0, stream>>>(x, count, 0);
        answer<<<rows, kRowThreads, 0, stream>>>(stored, x, cols);
    }
    sample<<<1, 1, 0, stream>>>(x, count, 1);
    hipMemcpyAsync(y, stored, count * sizeof(float), hipMemcpyDeviceToDevice, stream);
    return hipGetLastError();
}
