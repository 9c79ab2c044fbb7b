// Tries: to fork to a second stream inside the capture and never to join it, so that work is not waited for. CUDA.
// Gains nothing: such a capture is an error, both sides are then run plainly, and the worker waits for all streams.
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static cudaStream_t side = nullptr;
    static cudaEvent_t forked = nullptr;
    if (!side && (cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) != cudaSuccess ||
                  cudaEventCreateWithFlags(&forked, cudaEventDisableTiming) != cudaSuccess)) {
        return 1;
    }
    cudaEventRecord(forked, stream);
    cudaStreamWaitEvent(side, forked, 0);
    return honest_softmax(y, x, rows, cols, side);
}
