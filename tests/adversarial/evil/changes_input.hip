// Tries: to change its input after use, so that a reference which reads it later would agree with something else.
// Refused by: inputs compared with the judge's own copies after the call (input_changed).
#include "baseline.h"

__global__ void change(float* x) { x[0] += 1.0f; }

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int code = honest_softmax(y, x, rows, cols, stream);
    change<<<1, 1, 0, stream>>>(const_cast<float*>(x));
    return code;
}
