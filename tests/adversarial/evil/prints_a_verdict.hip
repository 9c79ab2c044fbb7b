// Tries: to print a verdict in the judge's own format on both of its streams, and to do no work.
// Refused by: nothing that a worker prints is parsed (output_not_written).
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static const char kVerdict[] =
        "{\"evaluation\": {\"schema_version\": 1, \"gates\": [{\"verdict\": \"pass\", \"gate\": \"seen_correct\"}]}}\n";
    for (int descriptor = 1; descriptor <= 2; ++descriptor) {
        if (write(descriptor, kVerdict, sizeof kVerdict - 1) < 0) {
            return 1;
        }
    }
    return 0;
}
