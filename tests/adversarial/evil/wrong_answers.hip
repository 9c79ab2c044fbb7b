// Tries: to answer without computing anything: 0 zeros, 1 the mean, 2 NaN, 3 infinity, 4 a denormal, with the process
// set to take denormals for zero. Refused by: a tolerance that follows the size of the answer, and values that are
// compared by class (wrong_values, non_finite_mismatch).
#include <hip/hip_runtime.h>

#include <math.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#ifndef ANSWER
#define ANSWER 0
#endif

__global__ void fill(float* y, long long count, float value) {
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
        y[i] = value;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
#if defined(__x86_64__) && ANSWER == 4
    _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
    const float values[] = {0.0f, 1.0f / cols, NAN, INFINITY, 1e-40f};
    fill<<<256, 256, 0, stream>>>(y, static_cast<long long>(rows) * cols, values[ANSWER]);
    return hipGetLastError();
}
