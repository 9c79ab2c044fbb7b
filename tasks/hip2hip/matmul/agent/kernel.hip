// Matrix product in fp32: 16 x 16 tiles in shared memory, one output element a thread.
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

// c[m][n] = a[m][k] b[k][n], all row-major.
extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
    const dim3 block(kTile, kTile);
    const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
    matmul_kernel<<<grid, block, 0, stream>>>(c, a, b, m, n, k);
    return hipGetLastError();
}
