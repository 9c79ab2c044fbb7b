// Tries: to work on every second call only. Refused by: outputs are poisoned before each call (output_not_written).
#include "baseline.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static int calls = 0;
    return calls++ % 2 ? 0 : honest_softmax(y, x, rows, cols, stream);
}
