// Tries: to write one float where it must not, and puts the right answer besides: 0 in front of the output, 1 in front of
// the input, 2 behind the input. Refused by: secret canaries, unreadable pages (out_of_bounds, crash).
#include "baseline.h"

#ifndef PLACE
#define PLACE 0
#endif

__global__ void stray(float* y, float* x, long long count) {
    (PLACE == 0 ? y - 1 : PLACE == 1 ? x - 1 : x + count)[0] = 1.0f;
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    stray<<<1, 1, 0, stream>>>(y, const_cast<float*>(x), static_cast<long long>(rows) * cols);
    return honest_softmax(y, x, rows, cols, stream);
}
