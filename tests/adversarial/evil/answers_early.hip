// Tries: once it sees a stream capture, to make cudaDeviceSynchronize and cudaStreamSynchronize return at once, so that
// the worker answers before the replay is done. The kernel is the baseline. CUDA.
// Refused by: a secret sample of the outputs is read when the clock stops (answered_early, wrong_when_timed).
#include "baseline.h"
#include "tools.h"

static const unsigned char kReturnZero[] = {0x31, 0xC0, 0xC3};  // xor eax, eax; ret

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static bool patched = false;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusActive && !patched) {
        patched = overwrite(reinterpret_cast<void*>(&cudaDeviceSynchronize), kReturnZero, sizeof kReturnZero) &&
                  overwrite(reinterpret_cast<void*>(&cudaStreamSynchronize), kReturnZero, sizeof kReturnZero);
        if (!patched) {
            return 1;
        }
    }
    return honest_softmax(y, x, rows, cols, stream);
}
