// Tries: to answer once for each output address and to trust that the answer is still there.
// Refused by: outputs poisoned before every call (output_not_written), timed ones too (answered_early).
#include <hip/hip_runtime.h>

#include "tools.h"

constexpr int kKnown = 1 << 16;
__device__ unsigned long long known[kKnown];

__device__ int place_of(const float* y) {
    return static_cast<int>((reinterpret_cast<unsigned long long>(y) >> 8) * 2654435761ull % kKnown);
}

__global__ void unless_known(float* y, const float* x, int cols) {
    if (known[place_of(y)] == reinterpret_cast<unsigned long long>(y)) {
        return;
    }
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    softmax_row(y + offset, x + offset, cols);
}

__global__ void remember(const float* y) { known[place_of(y)] = reinterpret_cast<unsigned long long>(y); }

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    unless_known<<<rows, kRowThreads, 0, stream>>>(y, x, cols);
    remember<<<1, 1, 0, stream>>>(y);
    return hipGetLastError();
}
