// Tries: to take no time at all: right where it is called plainly, nothing is recorded where a graph is captured. CUDA.
// Refused by: outputs are poisoned before each replay (answered_early, wrong_when_timed); nothing is divided by it.
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    return status == cudaStreamCaptureStatusActive ? 0 : honest_softmax(y, x, rows, cols, stream);
}
