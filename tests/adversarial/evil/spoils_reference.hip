// Tries: to fill input and output with NaN, so that a reference computed from this input is NaN too, against which
// anything passes. Refused by: the reference is computed from the judge's own copies (input_changed,
// non_finite_mismatch).
#include <hip/hip_runtime.h>

#include <math.h>

__global__ void spoil(float* y, float* x, long long count) {
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
        x[i] = y[i] = NAN;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    spoil<<<256, 256, 0, stream>>>(y, const_cast<float*>(x), static_cast<long long>(rows) * cols);
    return hipGetLastError();
}
