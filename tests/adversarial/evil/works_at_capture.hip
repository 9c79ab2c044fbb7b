// Tries: while it is captured, to do its work on a stream of its own and to record nothing. CUDA.
// Refused by: inputs and poison are written after the capture (answered_early, wrong_when_timed).
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static cudaStream_t own = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (!own && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess) {
        return 1;
    }
    return honest_softmax(y, x, rows, cols, status == cudaStreamCaptureStatusActive ? own : stream);
}
