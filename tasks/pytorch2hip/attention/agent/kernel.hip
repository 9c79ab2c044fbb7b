#include <hip/hip_runtime.h>

// out, q, k, v [batch, heads, seq, head_dim]: contiguous device buffers.
extern "C" int attention(float* out, const float* q, const float* k, const float* v, int batch, int heads, int seq,
                         int head_dim, hipStream_t stream) {
  return hipErrorNotSupported;
}
