// Honest work that sleeps 4 s in each call: as long as possible, with each call below the limit for one. A correct
// candidate may be slow; what all calls may take together ends it otherwise. Must pass. CPU.
#include "baseline.h"

#include <unistd.h>

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    usleep(4000000);
    return honest_softmax(y, x, rows, cols, stream);
}
