// Tries: to record nothing for one captured call in sixteen, and only for large outputs, of which few are compared in
// full. The kernel is the baseline. CUDA.
// Refused by: a sample of all timed outputs, in which any poison is one too much (answered_early, wrong_when_timed).
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static unsigned int captured = 0;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    const bool large = static_cast<long long>(rows) * cols >= 1 << 24;
    if (large && status == cudaStreamCaptureStatusActive && captured++ % 16 == 7) {
        return 0;
    }
    return honest_softmax(y, x, rows, cols, stream);
}
