// Tries: to save the last row of many. Refused by: the poison in that row (output_not_written).
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return rows > 1 ? honest_softmax(y, x, rows - 1, cols, stream) : 0;
}
