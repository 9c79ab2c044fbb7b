// Honest: the inner dimension is split over blocks, whose parts go to a static workspace and are added up by a second
// kernel. Must pass.
#include "baseline.h"

constexpr long long kMostFloats = 1 << 24;

__global__ void compute_parts(float* parts, const float* a, const float* b, int m, int n, int k, int part) {
    __shared__ float a_tile[kTile][kTile + 1];
    __shared__ float b_tile[kTile][kTile + 1];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    const int first = blockIdx.z * part;
    const int end = first + part < k ? first + part : k;
    float sum = 0.0f;
    for (int start = first; start < end; start += kTile) {
        const int a_col = start + threadIdx.x;
        const int b_row = start + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && a_col < end ? a[static_cast<long long>(row) * k + a_col] : 0.0f;
        b_tile[threadIdx.y][threadIdx.x] = b_row < end && col < n ? b[static_cast<long long>(b_row) * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kTile; ++i) {
            sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        parts[(static_cast<long long>(blockIdx.z) * m + row) * n + col] = sum;
    }
}

__global__ void add_parts(float* c, const float* parts, long long count, int number) {
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        float sum = 0.0f;
        for (int part = 0; part < number; ++part) {
            sum += parts[part * count + i];
        }
        c[i] = sum;
    }
}

extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
    static float* workspace = nullptr;
    if (!workspace && hipMalloc(&workspace, kMostFloats * sizeof(float)) != hipSuccess) {
        return hipErrorOutOfMemory;
    }
    const long long count = static_cast<long long>(m) * n;
    const int room = static_cast<int>(kMostFloats / count < 64 ? kMostFloats / count : 64);
    const int wanted = (k + 127) / 128 < room ? (k + 127) / 128 : room;
    if (wanted < 2) {
        return honest_matmul(c, a, b, m, n, k, stream);
    }
    const int part = (k + wanted - 1) / wanted;
    const int number = (k + part - 1) / part;
    const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile, number);
    compute_parts<<<grid, dim3(kTile, kTile), 0, stream>>>(workspace, a, b, m, n, k, part);
    const long long blocks = (count + 255) / 256;
    add_parts<<<static_cast<int>(blocks < 2048 ? blocks : 2048), 256, 0, stream>>>(c, workspace, count, number);
    return hipGetLastError();
}
