// Honest: two halves on two streams, forked from the caller's stream and joined again. Must pass. CUDA.
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static cudaStream_t side = nullptr;
    static cudaEvent_t forked = nullptr, done = nullptr;
    if (!side && (cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) != cudaSuccess ||
                  cudaEventCreateWithFlags(&forked, cudaEventDisableTiming) != cudaSuccess ||
                  cudaEventCreateWithFlags(&done, cudaEventDisableTiming) != cudaSuccess)) {
        return 1;
    }
    const int half = rows / 2;
    const long long offset = static_cast<long long>(half) * cols;
    cudaEventRecord(forked, stream);
    cudaStreamWaitEvent(side, forked, 0);
    int code = honest_softmax(y + offset, x + offset, rows - half, cols, side);
    if (code == 0 && half > 0) {
        code = honest_softmax(y, x, half, cols, stream);
    }
    cudaEventRecord(done, side);
    cudaStreamWaitEvent(stream, done, 0);
    return code;
}
