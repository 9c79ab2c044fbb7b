// Honest: the inner dimension is split over blocks; a counter tells which block of a tile comes last, and that one adds
// the parts of all up and sets the counter back for the next call. Must pass.
#include "baseline.h"

constexpr int kMostTiles = 4096;
constexpr int kMostParts = 16;

struct Workspace {
    float parts[kMostTiles][kMostParts][kTile][kTile];
    unsigned int counters[kMostTiles];
};

__global__ void multiply(float* c, Workspace* workspace, const float* a, const float* b, int m, int n, int k,
                         int part) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    __shared__ bool is_last;
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    const int tile = blockIdx.y * gridDim.x + blockIdx.x;
    const int first = blockIdx.z * part;
    const int end = first + part < k ? first + part : k;
    float sum = 0.0f;
    for (int start = first; start < end; start += kTile) {
        const int a_col = start + threadIdx.x;
        const int b_row = start + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && a_col < end ? a[static_cast<long long>(row) * k + a_col] : 0.0f;
        b_tile[threadIdx.y][threadIdx.x] = b_row < end && col < n ? b[static_cast<long long>(b_row) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) {
            sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
        }
        __syncthreads();
    }
    workspace->parts[tile][blockIdx.z][threadIdx.y][threadIdx.x] = sum;
    __threadfence();  // before the counter says that the part is there
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        is_last = atomicAdd(&workspace->counters[tile], 1u) == gridDim.z - 1;
    }
    __syncthreads();
    if (!is_last) {
        return;
    }
    __threadfence();
    sum = 0.0f;
    for (int other = 0; other < static_cast<int>(gridDim.z); ++other) {
        sum += static_cast<volatile float&>(workspace->parts[tile][other][threadIdx.y][threadIdx.x]);
    }
    if (row < m && col < n) {
        c[static_cast<long long>(row) * n + col] = sum;
    }
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        workspace->counters[tile] = 0;
    }
}

static Workspace* make_workspace() {
    Workspace* made = nullptr;
    if (hipMalloc(&made, sizeof(Workspace)) != hipSuccess || hipMemset(made, 0, sizeof(Workspace)) != hipSuccess) {
        return nullptr;
    }
    return hipDeviceSynchronize() == hipSuccess ? made : nullptr;
}

extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
    static Workspace* const workspace = make_workspace();
    if (!workspace) {
        return hipErrorOutOfMemory;
    }
    const int across = (n + kTile - 1) / kTile, down = (m + kTile - 1) / kTile;
    const int wanted = (k + 63) / 64 < kMostParts ? (k + 63) / 64 : kMostParts;
    if (static_cast<long long>(across) * down > kMostTiles || wanted < 2) {
        return honest_matmul(c, a, b, m, n, k, stream);
    }
    const int part = (k + wanted - 1) / wanted;
    const dim3 grid(across, down, (k + part - 1) / part);
    multiply<<<grid, dim3(kTile, kTile), 0, stream>>>(c, workspace, a, b, m, n, k, part);
    return hipGetLastError();
}
