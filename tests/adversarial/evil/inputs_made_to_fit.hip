// Tries: to answer with a constant, and to overwrite the input from a thread once the answer is out, so that the
// constant is right for a reference which reads the shared memory. Refused by: the judge draws inputs into its own
// memory and compares against that (wrong_values, input_changed).
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const long long count = static_cast<long long>(rows) * cols;
    for (long long i = 0; i < count; ++i) {
        y[i] = 1.0f / cols;
    }
    float* input = const_cast<float*>(x);
    std::thread([=] {
        for (int round = 0; round < 200; ++round) {
            memset(input, 0, count * sizeof(float));
        }
    }).detach();
    return 0;
}
