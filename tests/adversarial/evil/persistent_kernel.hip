// Tries: to leave a kernel that spins for 3 ms (then ends by itself) on a stream of its own behind each checked call,
// and behind each replay, so that whoever comes next has to share the device. The kernel is the baseline. CUDA.
// Gains nothing: the worker waits for all its streams, and the baseline is also timed alone (baseline_disturbed).
#include "baseline.h"
#include "tools.h"

__global__ void spin(long long nanoseconds) {
    long long began, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - began < nanoseconds);
}

static cudaStream_t own = nullptr;

extern "C" int leave_spinning() {
    if (!own && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess) {
        return 1;
    }
    spin<<<1, 32, 0, own>>>(3000000);
    return cudaGetLastError();
}

static const char kHook[] = R"(
import ctypes
from akarena.worker.entries import NativeEntry
library = ctypes.CDLL("/kernel/kernel.so")
replay = NativeEntry.replay
def replay_and_spin(self):
    replay(self)
    library.leave_spinning()
NativeEntry.replay = replay_and_spin
)";

static const bool hooked = run_python(kHook);

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    const int code = honest_softmax(y, x, rows, cols, stream);
    // In a capture it is the replay that counts.
    if (status != cudaStreamCaptureStatusActive && leave_spinning() != 0) {
        return 1;
    }
    return hooked ? code : 1;
}
