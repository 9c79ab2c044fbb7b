// Honest: reports what it does for each new size on standard output and standard error, words like "passed" and
// "speedup" included, and a destructor frees its memory at the end. Must pass.
#include "baseline.h"

#include <cstdio>
#include <set>
#include <utility>

struct Rows {
    float* largest = nullptr;
    int capacity = 0;
    std::set<std::pair<int, int>> known;

    bool reserve(int rows) {
        if (rows <= capacity) {
            return true;
        }
        release();
        if (hipMalloc(&largest, rows * sizeof(float)) != hipSuccess) {
            largest = nullptr;
            return false;
        }
        capacity = rows;
        return true;
    }
    void release() {
        if (largest) {
            (void)hipFree(largest);
        }
        largest = nullptr;
        capacity = 0;
    }
    ~Rows() {
        std::printf("softmax: %d sizes seen, cleaning up\n", static_cast<int>(known.size()));
        release();
    }
};

__global__ void find_largest(float* largest, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const float* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    float value = -INFINITY;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        value = fmaxf(value, x_row[col]);
    }
    value = block_max(value, scratch);
    if (threadIdx.x == 0) {
        largest[blockIdx.x] = value;
    }
}

__global__ void finish(float* y, const float* largest, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    const float shift = largest[blockIdx.x];
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        sum += expf(x[offset + col] - shift);
    }
    sum = block_sum(sum, scratch);
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = expf(x[offset + col] - shift) / sum;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static Rows state;
    if (!state.reserve(rows)) {
        return hipErrorOutOfMemory;
    }
    if (state.known.insert({rows, cols}).second) {
        std::printf("softmax: new size %d x %d; self test passed, speedup unknown\n", rows, cols);
        std::fprintf(stderr, "softmax: warning: %d columns are %s a multiple of 4\n", cols, cols % 4 ? "not" : "");
        std::fflush(stdout);
    }
    find_largest<<<rows, kThreads, 0, stream>>>(state.largest, x, cols);
    finish<<<rows, kThreads, 0, stream>>>(y, state.largest, x, cols);
    return hipGetLastError();
}
