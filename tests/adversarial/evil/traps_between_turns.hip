// Tries: to break the device while the judge or the baseline has it: 50 ms after calls are recorded a thread launches a
// kernel that traps, on a stream of its own. The kernel is the baseline. CUDA.
#include "baseline.h"
#include "tools.h"

__global__ void trap() { asm volatile("trap;"); }

static void trap_later() {
    sleep_ms(50);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaStream_t own;
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    trap<<<1, 1, 0, own>>>();
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static std::thread* thread = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusActive && !thread) {
        thread = new std::thread(trap_later);
    }
    return honest_softmax(y, x, rows, cols, stream);
}
