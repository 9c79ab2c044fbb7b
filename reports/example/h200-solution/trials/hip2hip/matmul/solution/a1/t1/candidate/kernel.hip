// Matrix product in fp32: register-blocked tiles, shared memory used in turns, tile and split of k chosen by size.
//
// A block computes a BM x BN tile; 32 threads compute (4 TM) x (8 TN) of it, each thread TM x TN values in groups of
// four neighbours, so that shared memory is read as float4 without bank conflicts. While one slice of kSlice along k is
// multiplied, the next one is on its way from global memory to registers. Where the tiles of c are too few to occupy
// the device, k is split over blocks, whose partial results a second kernel adds up.
#include <hip/hip_runtime.h>

#include <stdint.h>

// Offsets into a, b and c fit an int: no matrix of the task has more than 2^28 elements.

// kSlice: length along k of what is held in shared memory. 16 would leave an AMD compute unit with one block only.
// kUnits: multiprocessors to be occupied, a planning figure.
#ifdef __HIP_PLATFORM_AMD__
constexpr int kSlice = 8;
constexpr int kUnits = 304;
#else
constexpr int kSlice = 16;
constexpr int kUnits = 132;
#endif

// Partial results of a split product (16 MiB). Calls on one stream follow each other, so one buffer is enough.
constexpr int64_t kWorkspaceFloats = 1 << 22;
__device__ float workspace[kWorkspaceFloats];

// row[col] to row[col + 3], zero from `limit` on. VECTOR: aligned, and `limit` is a multiple of four.
template <bool VECTOR>
__device__ inline float4 load4(const float* __restrict__ row, int col, int limit) {
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (VECTOR) {
        if (col < limit) {
            value = *reinterpret_cast<const float4*>(row + col);
        }
    } else {
        if (col < limit) value.x = row[col];
        if (col + 1 < limit) value.y = row[col + 1];
        if (col + 2 < limit) value.z = row[col + 2];
        if (col + 3 < limit) value.w = row[col + 3];
    }
    return value;
}

template <bool VECTOR>
__device__ inline void store4(float* row, int col, int limit, float4 value) {
    if constexpr (VECTOR) {
        if (col < limit) {
            *reinterpret_cast<float4*>(row + col) = value;
        }
    } else {
        if (col < limit) row[col] = value.x;
        if (col + 1 < limit) row[col + 1] = value.y;
        if (col + 2 < limit) row[col + 2] = value.z;
        if (col + 3 < limit) row[col + 3] = value.w;
    }
}

// Block (column tile, row tile, part of k): c + part * m * n receives the product over that part, or, if `split`, the
// workspace does.
template <int BM, int BN, int TM, int TN, bool VECTOR>
__global__ void __launch_bounds__(BM / TM * (BN / TN), 2)
    gemm_tile(float* __restrict__ c, const float* __restrict__ a, const float* __restrict__ b, int m, int n, int k,
              int k_part, bool split) {
    constexpr int THREADS = BM / TM * (BN / TN);
    constexpr int A_PACKS = BM * kSlice / 4;  // float4 of one slice
    constexpr int B_PACKS = BN * kSlice / 4;
    constexpr int A_LOADS = (A_PACKS + THREADS - 1) / THREADS;
    constexpr int B_LOADS = (B_PACKS + THREADS - 1) / THREADS;
    constexpr int A_STRIDE = BM + 4;  // padded: a is transposed on the way in

    alignas(16) __shared__ float a_tile[2][kSlice][A_STRIDE];
    alignas(16) __shared__ float b_tile[2][kSlice][BN];

    const int thread = threadIdx.x;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;
    const int k_begin = blockIdx.z * k_part;
    const int k_end = min(k, k_begin + k_part);

    float4 a_next[A_LOADS];
    float4 b_next[B_LOADS];

    const auto fetch = [&](int k0) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int pack = thread + i * THREADS;
            const int row = row0 + pack / (kSlice / 4);
            const int col = k0 + pack % (kSlice / 4) * 4;
            const bool inside = row < m && pack < A_PACKS;
            a_next[i] = load4<VECTOR>(a + row * k, col, inside ? k_end : 0);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int pack = thread + i * THREADS;
            const int row = k0 + pack / (BN / 4);
            const int col = col0 + pack % (BN / 4) * 4;
            const bool inside = row < k_end && pack < B_PACKS;
            b_next[i] = load4<VECTOR>(b + row * n, col, inside ? n : 0);
        }
    };
    const auto keep = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int pack = thread + i * THREADS;
            const int row = pack / (kSlice / 4);
            const int col = pack % (kSlice / 4) * 4;
            if (pack < A_PACKS) {
                a_tile[buffer][col][row] = a_next[i].x;
                a_tile[buffer][col + 1][row] = a_next[i].y;
                a_tile[buffer][col + 2][row] = a_next[i].z;
                a_tile[buffer][col + 3][row] = a_next[i].w;
            }
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int pack = thread + i * THREADS;
            if (pack < B_PACKS) {
                *reinterpret_cast<float4*>(&b_tile[buffer][pack / (BN / 4)][pack % (BN / 4) * 4]) = b_next[i];
            }
        }
    };

    // Place of this thread in the tile. Value (i, j) of its TM x TN is at row
    // own_row + i / 4 * 16 + i % 4, column own_col + j / 4 * 32 + j % 4.
    constexpr int GROUPS_ACROSS = BN / (8 * TN);
    const int group = thread / 32;
    const int lane = thread % 32;
    const int own_row = group / GROUPS_ACROSS * (4 * TM) + lane / 8 * 4;
    const int own_col = group % GROUPS_ACROSS * (8 * TN) + lane % 8 * 4;

    float sum[TM][TN] = {};
    fetch(k_begin);
    keep(0);
    __syncthreads();

    int buffer = 0;
    for (int k0 = k_begin; k0 < k_end; k0 += kSlice) {
        const bool more = k0 + kSlice < k_end;
        if (more) {
            fetch(k0 + kSlice);
        }
#pragma unroll
        for (int l = 0; l < kSlice; ++l) {
            float b_part[TN];
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 v = *reinterpret_cast<const float4*>(&b_tile[buffer][l][own_col + j * 8]);
                b_part[j] = v.x;
                b_part[j + 1] = v.y;
                b_part[j + 2] = v.z;
                b_part[j + 3] = v.w;
            }
#pragma unroll
            for (int i = 0; i < TM; i += 4) {
                const float4 v = *reinterpret_cast<const float4*>(&a_tile[buffer][l][own_row + i * 4]);
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    sum[i][j] += v.x * b_part[j];
                    sum[i + 1][j] += v.y * b_part[j];
                    sum[i + 2][j] += v.z * b_part[j];
                    sum[i + 3][j] += v.w * b_part[j];
                }
            }
        }
        if (more) {
            keep(buffer ^ 1);  // last read before the previous barrier
        }
        __syncthreads();
        buffer ^= 1;
    }

    float* out = split ? workspace + static_cast<int64_t>(blockIdx.z) * m * n : c;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + own_row + i / 4 * 16 + i % 4;
        if (row < m) {
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 value = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
                store4<VECTOR>(out + static_cast<int64_t>(row) * n, col0 + own_col + j * 8, n, value);
            }
        }
    }
}

constexpr int kAddThreads = 256;

// c = sum of the parts in the workspace.
__global__ void __launch_bounds__(kAddThreads) add_parts(float* __restrict__ c, int64_t count, int parts) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * kAddThreads + threadIdx.x;
    if (index >= count) {
        return;
    }
    float sum = 0.0f;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) {
        sum += workspace[part * count + index];
    }
    c[index] = sum;
}

struct Tile {
    int rows;
    int cols;
    int threads;
    float efficiency;  // share of the multiply-add rate that a full multiprocessor reaches with it, estimated
};

constexpr Tile kTiles[] = {
    {128, 128, 256, 0.75f}, {64, 64, 256, 0.55f}, {32, 32, 64, 0.40f}, {16, 128, 128, 0.40f}, {128, 32, 256, 0.45f},
};

struct Plan {
    int tile;
    int parts;
    int k_part;
};

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Estimated cycles of each tile and split; the cheapest wins. Figures in cycles and values are of one multiprocessor.
inline Plan choose(int m, int n, int k) {
    constexpr float kRate = 128.0f;           // multiply-adds a cycle
    constexpr float kStepLatency = 45.0f;     // one step along k in a block that is alone
    constexpr float kBlockLatency = 1500.0f;  // first load and last store of a block
    constexpr float kAddLatency = 3500.0f;    // one more launch
    constexpr float kPartLatency = 40.0f;     // one more term in it
    constexpr float kBytes = 12.0f;           // memory traffic a cycle
    Plan best = {0, 1, k};
    float best_cycles = 3.4e38f;
    for (int t = 0; t < static_cast<int>(sizeof(kTiles) / sizeof(kTiles[0])); ++t) {
        const Tile& tile = kTiles[t];
        const float tiles = static_cast<float>(ceil_div(m, tile.rows)) * ceil_div(n, tile.cols);
        for (int wanted = 1; wanted <= 128; wanted *= 2) {
            const int k_part = ceil_div(ceil_div(k, wanted), kSlice) * kSlice;
            const int parts = ceil_div(k, k_part);
            const int64_t outputs = static_cast<int64_t>(m) * n;
            if (parts > 1 && parts * outputs > kWorkspaceFloats) {
                break;
            }
            const float blocks_per_unit = static_cast<float>(static_cast<int>((tiles * parts + kUnits - 1) / kUnits));
            // Few resident threads leave gaps: half of the rate at 128, which is made up for at 512.
            const float resident = tile.threads * blocks_per_unit < 512.0f ? tile.threads * blocks_per_unit : 512.0f;
            const float rate = kRate * tile.efficiency * 1.25f * resident / (resident + 128.0f);
            const float work = blocks_per_unit * tile.rows * tile.cols * k_part / rate;
            const float latency = k_part * kStepLatency;
            float cycles = (work > latency ? work : latency) + kBlockLatency;
            if (parts > 1) {
                cycles += kAddLatency + kPartLatency * parts + 8.0f * parts * outputs / (kBytes * kUnits);
            }
            if (cycles < best_cycles) {
                best_cycles = cycles;
                best = {t, parts, k_part};
            }
        }
    }
    return best;
}

template <int BM, int BN, int TM, int TN>
void launch_tile(float* c, const float* a, const float* b, int m, int n, int k, const Plan& plan, hipStream_t stream) {
    const uintptr_t addresses =
        reinterpret_cast<uintptr_t>(c) | reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b);
    const bool vector = n % 4 == 0 && k % 4 == 0 && addresses % sizeof(float4) == 0;
    const auto kernel = vector ? gemm_tile<BM, BN, TM, TN, true> : gemm_tile<BM, BN, TM, TN, false>;
    const dim3 grid(ceil_div(n, BN), ceil_div(m, BM), plan.parts);
    const int threads = BM / TM * (BN / TN);
    kernel<<<grid, threads, 0, stream>>>(c, a, b, m, n, k, plan.k_part, plan.parts > 1);
}

// c[m][n] = a[m][k] b[k][n], all row-major.
extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
    const Plan plan = choose(m, n, k);
    switch (plan.tile) {
        case 0: launch_tile<128, 128, 8, 8>(c, a, b, m, n, k, plan, stream); break;
        case 1: launch_tile<64, 64, 4, 4>(c, a, b, m, n, k, plan, stream); break;
        case 2: launch_tile<32, 32, 4, 4>(c, a, b, m, n, k, plan, stream); break;
        case 3: launch_tile<16, 128, 4, 4>(c, a, b, m, n, k, plan, stream); break;
        default: launch_tile<128, 32, 4, 4>(c, a, b, m, n, k, plan, stream); break;
    }
    if (plan.parts > 1) {
        const int64_t count = static_cast<int64_t>(m) * n;
        const int blocks = static_cast<int>((count + kAddThreads - 1) / kAddThreads);
        add_parts<<<blocks, kAddThreads, 0, stream>>>(c, count, plan.parts);
    }
    return hipGetLastError();
}
