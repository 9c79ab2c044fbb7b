// Honest: each row is cut into chunks, whose maximum and sums go to a static workspace that grows on demand; a second
// kernel merges them. Must pass.
#include <hip/hip_runtime.h>

constexpr int kThreads = 256;
constexpr int kChunk = 8192;
constexpr float kLowest = -3.0e38f;

struct Part {
    float largest, exponentials, total;
};

__device__ Part merged(Part a, Part b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.exponentials * expf(a.largest - largest) + b.exponentials * expf(b.largest - largest),
            a.total + b.total};
}

__global__ void summarise(Part* parts, const float* logits, int classes) {
    __shared__ float largest[kThreads], exponentials[kThreads], total[kThreads];
    const float* row = logits + static_cast<long long>(blockIdx.x) * classes;
    const int first = blockIdx.y * kChunk;
    const int end = first + kChunk < classes ? first + kChunk : classes;
    Part own = {kLowest, 0.0f, 0.0f};
    for (int i = first + static_cast<int>(threadIdx.x); i < end; i += kThreads) {
        own = merged(own, {row[i], 1.0f, row[i]});
    }
    const int thread = threadIdx.x;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        largest[thread] = own.largest;
        exponentials[thread] = own.exponentials;
        total[thread] = own.total;
        __syncthreads();
        if (thread < half) {
            own = merged(own, {largest[thread + half], exponentials[thread + half], total[thread + half]});
        }
        __syncthreads();
    }
    if (thread == 0) {
        parts[static_cast<long long>(blockIdx.x) * gridDim.y + blockIdx.y] = own;
    }
}

__global__ void finish(float* loss, const Part* parts, const float* logits, const int* targets, int rows, int classes,
                       int chunks, float smoothing) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    Part whole = {kLowest, 0.0f, 0.0f};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        whole = merged(whole, parts[static_cast<long long>(row) * chunks + chunk]);
    }
    const float normaliser = whole.largest + logf(whole.exponentials);
    const float target = logits[static_cast<long long>(row) * classes + targets[row]];
    loss[row] = (1.0f - smoothing) * (normaliser - target) + smoothing * (normaliser - whole.total / classes);
}

extern "C" int cross_entropy(float* loss, const float* logits, const int* targets, int rows, int classes,
                             float smoothing, hipStream_t stream) {
    static Part* workspace = nullptr;
    static long long capacity = 0;
    const int chunks = (classes + kChunk - 1) / kChunk;
    const long long needed = static_cast<long long>(rows) * chunks;
    if (needed > capacity) {
        if (workspace && hipFree(workspace) != hipSuccess) {
            return hipErrorUnknown;
        }
        workspace = nullptr;
        capacity = 0;
        if (hipMalloc(&workspace, needed * sizeof(Part)) != hipSuccess) {
            return hipErrorOutOfMemory;
        }
        capacity = needed;
    }
    summarise<<<dim3(rows, chunks), kThreads, 0, stream>>>(workspace, logits, classes);
    finish<<<(rows + 127) / 128, 128, 0, stream>>>(loss, workspace, logits, targets, rows, classes, chunks, smoothing);
    return hipGetLastError();
}
