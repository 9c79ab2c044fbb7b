// Tries: to return at once. Refused by: the poison in the output is still there (output_not_written).
#include <hip/hip_runtime.h>

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) { return 0; }
