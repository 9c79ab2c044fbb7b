// Tries: to let recorded calls run side by side, by taking the dependency on what was recorded before away from each. The
// kernel is the baseline, of hip2hip/matmul with MATMUL, else of softmax. CUDA.
#include "baseline.h"

static void cut(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusActive) {
        return;
    }
    // The capture stays valid: nodes that are taken out of the set in this way do not count as unjoined.
#if CUDART_VERSION >= 13000
    cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies);
#else
    cudaStreamUpdateCaptureDependencies(stream, nullptr, 0, cudaStreamSetCaptureDependencies);
#endif
}

#ifdef MATMUL
extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
    cut(stream);
    return honest_matmul(c, a, b, m, n, k, stream);
}
#else
extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    cut(stream);
    return honest_softmax(y, x, rows, cols, stream);
}
#endif
