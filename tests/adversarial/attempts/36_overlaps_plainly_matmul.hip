// TASK hip2hip/matmul
// TRIES refuses to be recorded (a synchronisation spoils the capture) and is called plainly; there each call goes to another of 16 streams and none waits for the one before
// SUCCESS `faster` on sizes with few outputs with the baseline's kernel: calls overlap
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

extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
#ifdef __CUDACC__
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  if (status == cudaStreamCaptureStatusActive) return cudaStreamSynchronize(stream);
  static cudaStream_t streams[16];
  static cudaEvent_t begun;
  static unsigned turn = 0;
  if (!streams[0]) {
    for (auto& s : streams) cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
  }
  cudaEventRecord(begun, stream);
  stream = streams[turn++ % 16];
  cudaStreamWaitEvent(stream, begun, 0);
#endif
    const dim3 block(kTile, kTile);
    const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
    matmul_kernel<<<grid, block, 0, stream>>>(c, a, b, m, n, k);
    return hipGetLastError();
}
