// Tries: to look like somebody else's use of the device: kernels of 200 ms on a stream of its own, and 6 GiB of
// page-locked memory, whose release takes long once it is killed. The kernel is the baseline. CUDA.
#include "baseline.h"
#include "tools.h"

#include <chrono>

__global__ void spin_200ms() {
    long long began, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - began < 200000000);
}

static void hog() {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    void* pinned = nullptr;
    for (int i = 0; i < 6; ++i) {
        cudaHostAlloc(&pinned, size_t(1) << 30, cudaHostAllocPortable);
    }
    cudaStream_t own;
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (; std::chrono::steady_clock::now() < end; sleep_ms(20)) {
        spin_200ms<<<132, 1024, 0, own>>>();
        cudaStreamSynchronize(own);
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static std::thread* thread = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusActive && !thread) {
        thread = new std::thread(hog);
    }
    return honest_softmax(y, x, rows, cols, stream);
}
