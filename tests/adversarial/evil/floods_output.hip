// Tries: to print 256 MB of bytes that are no text, so that whoever keeps them runs out of memory or cannot read them.
// Refused by: head and tail are kept, and printed bytes decide nothing (output_not_written); never void.
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static char bytes[1 << 16];
    for (size_t i = 0; i < sizeof bytes; ++i) {
        bytes[i] = static_cast<char>(i * 131 >> 3);
    }
    for (int count = 0; count < 2048; ++count) {
        if (write(1, bytes, sizeof bytes) < 0 || write(2, bytes, sizeof bytes) < 0) {
            return 1;
        }
    }
    return 0;
}
