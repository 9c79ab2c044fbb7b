// Softmax over rows. The row is read once and kept in registers wherever it fits; the kernel is chosen by row length:
//   up to 1024 columns       2 to 32 lanes a row, several rows a block, no barrier
//   up to 32768 columns      one block a row, all values in registers
//   longer                   the same block; what exceeds the registers is read a second time (online softmax)
//   few rows of > 8192       a row is split over blocks, in two launches
// Every kernel exists for float4 (rows that are 16-byte aligned) and for float (any row).
// Shuffles stay within 32 lanes, so that wave sizes 32 and 64 both work.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kGroup = 32;
constexpr float kLowest = -3.0e38f;  // finite, so that an empty lane gives exp(0), not NaN

template <typename Pack>
constexpr int kWidth = sizeof(Pack) / sizeof(float);

template <typename Pack>
__device__ Pack filled(float value);
template <>
__device__ inline float filled<float>(float value) {
    return value;
}
template <>
__device__ inline float4 filled<float4>(float value) {
    return make_float4(value, value, value, value);
}

__device__ inline float max_of(float v) { return v; }
__device__ inline float max_of(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }

__device__ inline float sum_of(float v) { return v; }
__device__ inline float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ inline float exp_of(float v, float shift) { return expf(v - shift); }
__device__ inline float4 exp_of(float4 v, float shift) {
    return make_float4(expf(v.x - shift), expf(v.y - shift), expf(v.z - shift), expf(v.w - shift));
}

__device__ inline float scaled(float v, float factor) { return v * factor; }
__device__ inline float4 scaled(float4 v, float factor) {
    return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

// Largest value and sum over `lanes` neighbouring lanes (a power of two up to 32), returned to each of them.
__device__ inline float lanes_max(float value, int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor(value, step, kGroup));
    }
    return value;
}

__device__ inline float lanes_sum(float value, int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
        value += __shfl_xor(value, step, kGroup);
    }
    return value;
}

// The same over a block of THREADS; `scratch` (32 floats) may be used for one call only, which saves a barrier.
template <int THREADS>
__device__ inline float block_max(float value, float* scratch) {
    const int lane = threadIdx.x % kGroup;
    value = lanes_max(value, kGroup);
    if (lane == 0) {
        scratch[threadIdx.x / kGroup] = value;
    }
    __syncthreads();
    return lanes_max(lane < THREADS / kGroup ? scratch[lane] : kLowest, kGroup);
}

template <int THREADS>
__device__ inline float block_sum(float value, float* scratch) {
    const int lane = threadIdx.x % kGroup;
    value = lanes_sum(value, kGroup);
    if (lane == 0) {
        scratch[threadIdx.x / kGroup] = value;
    }
    __syncthreads();
    return lanes_sum(lane < THREADS / kGroup ? scratch[lane] : 0.0f, kGroup);
}

constexpr int kSmallThreads = 256;

// `lanes` lanes own a row of `packs` packs, at most PACKS each.
template <typename Pack, int PACKS>
__global__ void __launch_bounds__(kSmallThreads)
    small_rows(Pack* __restrict__ y, const Pack* __restrict__ x, int rows, int packs, int lanes) {
    const int lane = threadIdx.x % lanes;
    const int row = blockIdx.x * (kSmallThreads / lanes) + threadIdx.x / lanes;
    // Lanes beyond the last row compute it again: all lanes have to take part in the shuffles.
    const int64_t offset = static_cast<int64_t>(min(row, rows - 1)) * packs;

    Pack values[PACKS];
    float largest = kLowest;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * lanes + lane;
        values[i] = index < packs ? x[offset + index] : filled<Pack>(kLowest);
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        largest = fmaxf(largest, max_of(values[i]));
    }
    largest = lanes_max(largest, lanes);

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        values[i] = exp_of(values[i], largest);
        sum += sum_of(values[i]);
    }
    const float factor = 1.0f / lanes_sum(sum, lanes);

    if (row < rows) {
#pragma unroll
        for (int i = 0; i < PACKS; ++i) {
            const int index = i * lanes + lane;
            if (index < packs) {
                y[offset + index] = scaled(values[i], factor);
            }
        }
    }
}

// One block a row. The first THREADS * PACKS packs stay in registers, the others are read twice.
template <typename Pack, int THREADS, int PACKS>
__global__ void __launch_bounds__(THREADS)
    block_row(Pack* __restrict__ y, const Pack* __restrict__ x, int packs) {
    __shared__ float max_scratch[kGroup];
    __shared__ float sum_scratch[kGroup];
    const int64_t offset = static_cast<int64_t>(blockIdx.x) * packs;
    const Pack* x_row = x + offset;
    Pack* y_row = y + offset;
    const int first = threadIdx.x;
    const int first_streamed = THREADS * PACKS + first;

    Pack values[PACKS];
    float own_max = kLowest;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * THREADS + first;
        values[i] = index < packs ? x_row[index] : filled<Pack>(kLowest);
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        own_max = fmaxf(own_max, max_of(values[i]));
    }

    float sum = 0.0f;
    int end = first_streamed;
    for (; end < packs; end += 2 * THREADS) {
        const Pack v = x_row[end];
        const Pack w = end + THREADS < packs ? x_row[end + THREADS] : filled<Pack>(kLowest);
        const float new_max = fmaxf(own_max, fmaxf(max_of(v), max_of(w)));
        sum = sum * expf(own_max - new_max) + sum_of(exp_of(v, new_max)) + sum_of(exp_of(w, new_max));
        own_max = new_max;
    }

    const float largest = block_max<THREADS>(own_max, max_scratch);
    sum *= expf(own_max - largest);
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        values[i] = exp_of(values[i], largest);
        sum += sum_of(values[i]);
    }
    const float factor = 1.0f / block_sum<THREADS>(sum, sum_scratch);

    // Backwards, because what was read last is the likeliest to be in the cache.
    for (int index = end - 2 * THREADS; index >= first_streamed; index -= 2 * THREADS) {
        if (index + THREADS < packs) {
            y_row[index + THREADS] = scaled(exp_of(x_row[index + THREADS], largest), factor);
        }
        y_row[index] = scaled(exp_of(x_row[index], largest), factor);
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * THREADS + first;
        if (index < packs) {
            y_row[index] = scaled(values[i], factor);
        }
    }
}

constexpr int kSplitThreads = 256;
constexpr int kSplitValues = 16;  // values a thread
constexpr int kMaxSplitRows = 64;
constexpr int kMaxChunks = 64;

// Largest value and sum of exponentials of each chunk. Calls on one stream follow each other, so one buffer is enough.
__device__ float2 chunk_results[kMaxSplitRows * kMaxChunks];

// Block (chunk, row): maximum and sum of one chunk of a row.
template <typename Pack>
__global__ void __launch_bounds__(kSplitThreads) split_reduce(const Pack* __restrict__ x, int packs, int chunk_packs) {
    constexpr int PACKS = kSplitValues / kWidth<Pack>;
    __shared__ float max_scratch[kGroup];
    __shared__ float sum_scratch[kGroup];
    const Pack* x_row = x + static_cast<int64_t>(blockIdx.y) * packs;
    const int begin = blockIdx.x * chunk_packs + threadIdx.x;
    const int end = min(packs, static_cast<int>(blockIdx.x + 1) * chunk_packs);

    Pack values[PACKS];
    float largest = kLowest;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = begin + i * kSplitThreads;
        values[i] = index < end ? x_row[index] : filled<Pack>(kLowest);
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        largest = fmaxf(largest, max_of(values[i]));
    }
    largest = block_max<kSplitThreads>(largest, max_scratch);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        sum += sum_of(exp_of(values[i], largest));
    }
    sum = block_sum<kSplitThreads>(sum, sum_scratch);
    if (threadIdx.x == 0) {
        chunk_results[blockIdx.y * kMaxChunks + blockIdx.x] = make_float2(largest, sum);
    }
}

// Block (chunk, row): combine the chunks of the row, then write one chunk.
template <typename Pack>
__global__ void __launch_bounds__(kSplitThreads)
    split_write(Pack* __restrict__ y, const Pack* __restrict__ x, int packs, int chunk_packs) {
    constexpr int PACKS = kSplitValues / kWidth<Pack>;
    const int64_t offset = static_cast<int64_t>(blockIdx.y) * packs;
    const int begin = blockIdx.x * chunk_packs + threadIdx.x;
    const int end = min(packs, static_cast<int>(blockIdx.x + 1) * chunk_packs);

    Pack values[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = begin + i * kSplitThreads;
        values[i] = index < end ? x[offset + index] : filled<Pack>(kLowest);
    }

    const float2* results = chunk_results + blockIdx.y * kMaxChunks;
    const int chunks = gridDim.x;
    const int lane = threadIdx.x % kGroup;
    float largest = kLowest;
    for (int chunk = lane; chunk < chunks; chunk += kGroup) {
        largest = fmaxf(largest, results[chunk].x);
    }
    largest = lanes_max(largest, kGroup);
    float sum = 0.0f;
    for (int chunk = lane; chunk < chunks; chunk += kGroup) {
        sum += results[chunk].y * expf(results[chunk].x - largest);
    }
    const float factor = 1.0f / lanes_sum(sum, kGroup);

#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = begin + i * kSplitThreads;
        if (index < end) {
            y[offset + index] = scaled(exp_of(values[i], largest), factor);
        }
    }
}

template <typename Pack, int PACKS>
void launch_small(Pack* y, const Pack* x, int rows, int packs, int lanes, hipStream_t stream) {
    const int rows_per_block = kSmallThreads / lanes;
    const int blocks = (rows + rows_per_block - 1) / rows_per_block;
    const auto kernel = small_rows<Pack, PACKS>;
    kernel<<<blocks, kSmallThreads, 0, stream>>>(y, x, rows, packs, lanes);
}

template <typename Pack, int THREADS, int VALUES>
void launch_block(Pack* y, const Pack* x, int rows, int packs, hipStream_t stream) {
    const auto kernel = block_row<Pack, THREADS, VALUES / kWidth<Pack>>;
    kernel<<<rows, THREADS, 0, stream>>>(y, x, packs);
}

template <typename Pack>
void launch_split(Pack* y, const Pack* x, int rows, int cols, hipStream_t stream) {
    // Chunks as long as possible while there are still about two blocks for each of some 130 multiprocessors.
    int chunk = kSplitThreads * kSplitValues;
    while (chunk > 1024 && static_cast<int64_t>(rows) * cols / chunk < 256) {
        chunk /= 2;
    }
    const dim3 grid((cols + chunk - 1) / chunk, rows);
    const int packs = cols / kWidth<Pack>;
    const int chunk_packs = chunk / kWidth<Pack>;
    const auto reduce = split_reduce<Pack>;
    const auto write = split_write<Pack>;
    reduce<<<grid, kSplitThreads, 0, stream>>>(x, packs, chunk_packs);
    write<<<grid, kSplitThreads, 0, stream>>>(y, x, packs, chunk_packs);
}

template <typename Pack>
void launch(Pack* y, const Pack* x, int rows, int cols, hipStream_t stream) {
    const int packs = cols / kWidth<Pack>;
    if (cols <= 1024) {
        // At least this many packs a lane, so that each lane has enough reads in flight.
        constexpr int kTarget = kWidth<Pack> == 4 ? 2 : 4;
        int lanes = 1;
        while (lanes < kGroup && lanes * kTarget < packs) {
            lanes *= 2;
        }
        if (packs <= lanes * kTarget) {
            launch_small<Pack, kTarget>(y, x, rows, packs, lanes, stream);
        } else if (packs <= lanes * kTarget * 2) {
            launch_small<Pack, kTarget * 2>(y, x, rows, packs, lanes, stream);
        } else if (packs <= lanes * kTarget * 4) {
            launch_small<Pack, kTarget * 4>(y, x, rows, packs, lanes, stream);
        } else if constexpr (kWidth<Pack> == 1) {
            launch_small<Pack, kTarget * 8>(y, x, rows, packs, lanes, stream);
        }
    } else if (cols <= 2048) {
        launch_block<Pack, 256, 8>(y, x, rows, packs, stream);
    } else if (cols <= 4096) {
        launch_block<Pack, 256, 16>(y, x, rows, packs, stream);
    } else if (cols <= 8192) {
        launch_block<Pack, 512, 16>(y, x, rows, packs, stream);
    } else if (rows <= kMaxSplitRows && cols <= 1024 * kMaxChunks) {
        launch_split(y, x, rows, cols, stream);
    } else if (cols <= 16384) {
        launch_block<Pack, 512, 32>(y, x, rows, packs, stream);
    } else {
        launch_block<Pack, 1024, 32>(y, x, rows, packs, stream);
    }
}

// y[rows][cols] = softmax of each row of x[rows][cols].
extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(y) | reinterpret_cast<uintptr_t>(x);
    if (cols % 4 == 0 && addresses % sizeof(float4) == 0) {
        launch(reinterpret_cast<float4*>(y), reinterpret_cast<const float4*>(x), rows, cols, stream);
    } else {
        launch(y, x, rows, cols, stream);
    }
    return hipGetLastError();
}
