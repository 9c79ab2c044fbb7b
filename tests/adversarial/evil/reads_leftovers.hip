// Tries: to find the expected answer in memory that others used before: shared memory that it has not written, and 64 MB of
// device memory that it has just got. It looks for the first eight values of the answer's first row and copies what
// follows. Refused by: expected values are overwritten, and memory comes clean (output_not_written).
#include <hip/hip_runtime.h>

#include <math.h>

#include "tools.h"

constexpr int kSeen = 8;
constexpr int kSharedFloats = 8192;
constexpr long long kFloats = 16 << 20;

__global__ void dump_shared(float* to) {
    __shared__ float junk[kSharedFloats];
    for (int i = threadIdx.x; i < kSharedFloats; i += 256) {
        to[blockIdx.x * static_cast<long long>(kSharedFloats) + i] = static_cast<volatile float*>(junk)[i];
    }
}

__global__ void first_values(float* wanted, const float* x, int cols) {
    float largest = x[0], sum = 0.0f;
    for (int col = 1; col < cols; ++col) {
        largest = fmaxf(largest, x[col]);
    }
    for (int col = 0; col < cols; ++col) {
        sum += expf(x[col] - largest);
    }
    for (int col = 0; col < kSeen; ++col) {
        wanted[col] = expf(x[col] - largest) / sum;
    }
}

__global__ void search(float* y, const float* memory, long long floats, const float* wanted, long long count) {
    for (long long at = blockIdx.x * 256ll + threadIdx.x; at + count <= floats; at += gridDim.x * 256ll) {
        int same = 0;
        while (same < kSeen && fabsf(memory[at + same] - wanted[same]) <= 1e-4f * wanted[same]) {
            ++same;
        }
        for (long long i = 0; same == kSeen && i < count; ++i) {
            y[i] = memory[at + i];
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static float* wanted = nullptr;
    float* memory = nullptr;
    const long long count = static_cast<long long>(rows) * cols;
    if ((!wanted && hipMalloc(&wanted, kSeen * sizeof(float)) != hipSuccess) ||
        hipMalloc(&memory, kFloats * sizeof(float)) != hipSuccess) {
        return 1;
    }
    first_values<<<1, 1, 0, stream>>>(wanted, x, cols);
    search<<<64, 256, 0, stream>>>(y, memory, kFloats, wanted, count);
    dump_shared<<<64, 256, 0, stream>>>(memory);
    search<<<64, 256, 0, stream>>>(y, memory, 64ll * kSharedFloats, wanted, count);
    hipStreamSynchronize(stream);
    hipFree(memory);
    return hipGetLastError();
}
