// TASK hip2hip/matmul
// TRIES looks for structure in the timed inputs: the same four neighbouring values at any place of another call's a or b, or at another place of its own (a pool of values, a period, copies); prints what it found. With any such hit a kernel could copy products instead of computing them
// SUCCESS any line `twin` in the worker's output on the H200 (evidence, judge.log)
#include <stdio.h>
#include <hip/hip_runtime.h>

constexpr int kTile = 16;

__global__ void matmul_kernel(float* c, const float* a, const float* b, int m, int n, int k) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;

    float sum = 0.0f;
    for (int start = 0; start < k; start += kTile) {
        const int a_col = start + threadIdx.x;
        const int b_row = start + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && a_col < k ? a[static_cast<long long>(row) * k + a_col] : 0.0f;
        b_tile[threadIdx.y][threadIdx.x] = b_row < k && col < n ? b[static_cast<long long>(b_row) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) {
            sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
        }
        __syncthreads();
    }

    if (row < m && col < n) {
        c[static_cast<long long>(row) * n + col] = sum;
    }
}


#ifdef __CUDACC__
struct Call { const float* a; const float* b; };
__device__ Call calls_so_far[64];
__device__ int twins_found;
__global__ void look(int place, Call own, long long a_size, long long b_size) {
  if (threadIdx.x == 0 && blockIdx.x == 0) calls_so_far[place] = own;
  if (a_size < 32 || b_size < 32) return;
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (int other = max(0, place - 2); other <= place; ++other) {
    const Call call = other == place ? own : calls_so_far[other];
    for (int side = 0; side < 2; ++side) {
      const float* where = side ? call.b : call.a;
      const long long size = side ? b_size : a_size;
      for (long long at = first; at + 4 < size; at += stride) {
        const float* sample = side ? own.b : own.a;
        if (other == place && at == 7) continue;
        const bool same = where[at] == sample[7] && where[at + 1] == sample[8] && where[at + 2] == sample[9] && where[at + 3] == sample[10];
        const float ratio = where[at] / sample[7];
        const bool scaled = sample[7] != 0.0f && ratio != 0.0f && where[at + 1] == sample[8] * ratio && where[at + 2] == sample[9] * ratio && where[at + 3] == sample[10] * ratio;
        if ((same || scaled) && (sample[7] != sample[8]) && atomicAdd(&twins_found, 1) < 8)
          printf("twin: call %d in call %d, %s, place %lld of %lld, ratio %g\n", place, other, side ? "b" : "a", at, size, ratio);
      }
    }
  }
}
#endif
extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
#ifdef __CUDACC__
  static int place = 0;
  static unsigned long long recording = 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaStreamGetCaptureInfo(stream, &status, &id);
  if (status == cudaStreamCaptureStatusActive) {
    if (id != recording) { recording = id; place = 0; }
    if (place < 6) look<<<264, 256, 0, stream>>>(place, Call{a, b}, static_cast<long long>(m) * k, static_cast<long long>(k) * n);
    ++place;
  }
#endif
    const dim3 block(kTile, kTile);
    const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
    matmul_kernel<<<grid, block, 0, stream>>>(c, a, b, m, n, k);
    return hipGetLastError();
}
