// Tries: to put functions of its own in the place of those that compare, copy and send, by exporting their names, and to
// do nothing. Refused by: it is loaded into a process that compares nothing, and its names stay its own
// (output_not_written).
#include <hip/hip_runtime.h>

#include <stddef.h>

extern "C" {
__attribute__((visibility("default"))) int memcmp(const void*, const void*, size_t) { return 0; }
__attribute__((visibility("default"))) int bcmp(const void*, const void*, size_t) { return 0; }
__attribute__((visibility("default"))) int mprotect(void*, size_t, int) { return 0; }
__attribute__((visibility("default"))) long send(int, const void*, size_t count, int) { return count; }

int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) { return 0; }
}
