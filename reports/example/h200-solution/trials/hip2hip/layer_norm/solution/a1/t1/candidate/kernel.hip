// Layer normalisation over rows. The row is read once and kept in registers, for both passes of the variance too.
//   up to 1024 columns       2 to 32 lanes a row, several rows a block, no barrier
//   up to 32768 columns      one block a row, 256 to 1024 threads, one barrier a reduction
// Every kernel exists for float4 (rows that are 16-byte aligned) and for float (any row).
// Shuffles stay within 32 lanes, so that wave sizes 32 and 64 both work.
#include <hip/hip_runtime.h>

#include <math.h>
#include <stdint.h>

constexpr int kGroup = 32;

template <typename Pack>
constexpr int kWidth = sizeof(Pack) / sizeof(float);

template <typename Pack>
struct Arguments {
    Pack* y;
    float* mean;
    float* rstd;
    const Pack* x;
    const Pack* weight;
    const Pack* bias;
    int rows;
    int packs;  // of one row
    float eps;
};

template <typename Pack>
__device__ Pack zero();
template <>
__device__ inline float zero<float>() {
    return 0.0f;
}
template <>
__device__ inline float4 zero<float4>() {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__device__ inline float sum_of(float v) { return v; }
__device__ inline float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ inline float squares_of(float v, float mean) { return (v - mean) * (v - mean); }
__device__ inline float squares_of(float4 v, float mean) {
    return (squares_of(v.x, mean) + squares_of(v.y, mean)) + (squares_of(v.z, mean) + squares_of(v.w, mean));
}

__device__ inline float normalised(float v, float mean, float rstd, float weight, float bias) {
    return (v - mean) * rstd * weight + bias;
}
__device__ inline float4 normalised(float4 v, float mean, float rstd, float4 weight, float4 bias) {
    return make_float4(normalised(v.x, mean, rstd, weight.x, bias.x), normalised(v.y, mean, rstd, weight.y, bias.y),
                       normalised(v.z, mean, rstd, weight.z, bias.z), normalised(v.w, mean, rstd, weight.w, bias.w));
}

// Sum over `lanes` neighbouring lanes (a power of two up to 32), returned to each of them.
__device__ inline float lanes_sum(float value, int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
        value += __shfl_xor(value, step, kGroup);
    }
    return value;
}

// Sum over a block of THREADS; `scratch` (32 floats) may be used for one call only, which saves a barrier.
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

// `lanes` lanes own a row, with at most PACKS packs each.
template <typename Pack, int PACKS>
__global__ void __launch_bounds__(kSmallThreads)
    small_rows(Pack* __restrict__ y, float* __restrict__ mean_out, float* __restrict__ rstd_out,
               const Pack* __restrict__ x, const Pack* __restrict__ weight, const Pack* __restrict__ bias, int rows,
               int packs, float eps, int lanes) {
    const int lane = threadIdx.x % lanes;
    const int row = blockIdx.x * (kSmallThreads / lanes) + threadIdx.x / lanes;
    // Lanes beyond the last row compute it again: all lanes have to take part in the shuffles.
    const int64_t offset = static_cast<int64_t>(min(row, rows - 1)) * packs;
    const float cols = static_cast<float>(packs * kWidth<Pack>);

    Pack values[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * lanes + lane;
        values[i] = index < packs ? x[offset + index] : zero<Pack>();
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        sum += sum_of(values[i]);
    }
    const float mean = lanes_sum(sum, lanes) / cols;

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        if (i * lanes + lane < packs) {
            squares += squares_of(values[i], mean);
        }
    }
    const float rstd = 1.0f / sqrtf(lanes_sum(squares, lanes) / cols + eps);

    if (row >= rows) {
        return;
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * lanes + lane;
        if (index < packs) {
            y[offset + index] = normalised(values[i], mean, rstd, weight[index], bias[index]);
        }
    }
    if (lane == 0) {
        mean_out[row] = mean;
        rstd_out[row] = rstd;
    }
}

// One block a row of at most THREADS * PACKS packs.
template <typename Pack, int THREADS, int PACKS>
__global__ void __launch_bounds__(THREADS)
    block_row(Pack* __restrict__ y, float* __restrict__ mean_out, float* __restrict__ rstd_out,
              const Pack* __restrict__ x, const Pack* __restrict__ weight, const Pack* __restrict__ bias, int packs,
              float eps) {
    __shared__ float sum_scratch[kGroup];
    __shared__ float squares_scratch[kGroup];
    const int64_t offset = static_cast<int64_t>(blockIdx.x) * packs;
    const float cols = static_cast<float>(packs * kWidth<Pack>);
    const int first = threadIdx.x;

    Pack values[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * THREADS + first;
        values[i] = index < packs ? x[offset + index] : zero<Pack>();
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        sum += sum_of(values[i]);
    }
    const float mean = block_sum<THREADS>(sum, sum_scratch) / cols;

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        if (i * THREADS + first < packs) {
            squares += squares_of(values[i], mean);
        }
    }
    const float rstd = 1.0f / sqrtf(block_sum<THREADS>(squares, squares_scratch) / cols + eps);

#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        const int index = i * THREADS + first;
        if (index < packs) {
            y[offset + index] = normalised(values[i], mean, rstd, weight[index], bias[index]);
        }
    }
    if (threadIdx.x == 0) {
        mean_out[blockIdx.x] = mean;
        rstd_out[blockIdx.x] = rstd;
    }
}

template <typename Pack, int PACKS>
void launch_small(const Arguments<Pack>& p, int lanes, hipStream_t stream) {
    const int rows_per_block = kSmallThreads / lanes;
    const int blocks = (p.rows + rows_per_block - 1) / rows_per_block;
    const auto kernel = small_rows<Pack, PACKS>;
    kernel<<<blocks, kSmallThreads, 0, stream>>>(p.y, p.mean, p.rstd, p.x, p.weight, p.bias, p.rows, p.packs, p.eps,
                                                 lanes);
}

template <typename Pack, int THREADS, int VALUES>
void launch_block(const Arguments<Pack>& p, hipStream_t stream) {
    const auto kernel = block_row<Pack, THREADS, VALUES / kWidth<Pack>>;
    kernel<<<p.rows, THREADS, 0, stream>>>(p.y, p.mean, p.rstd, p.x, p.weight, p.bias, p.packs, p.eps);
}

template <typename Pack>
void launch(const Arguments<Pack>& p, hipStream_t stream) {
    const int cols = p.packs * kWidth<Pack>;
    if (cols <= 1024) {
        // At least this many packs a lane, so that each lane has enough reads in flight.
        constexpr int kTarget = kWidth<Pack> == 4 ? 2 : 4;
        int lanes = 1;
        while (lanes < kGroup && lanes * kTarget < p.packs) {
            lanes *= 2;
        }
        if (p.packs <= lanes * kTarget) {
            launch_small<Pack, kTarget>(p, lanes, stream);
        } else if (p.packs <= lanes * kTarget * 2) {
            launch_small<Pack, kTarget * 2>(p, lanes, stream);
        } else if (p.packs <= lanes * kTarget * 4) {
            launch_small<Pack, kTarget * 4>(p, lanes, stream);
        } else if constexpr (kWidth<Pack> == 1) {
            launch_small<Pack, kTarget * 8>(p, lanes, stream);
        }
    } else if (cols <= 2048) {
        launch_block<Pack, 256, 8>(p, stream);
    } else if (cols <= 4096) {
        launch_block<Pack, 256, 16>(p, stream);
    } else if (cols <= 8192) {
        launch_block<Pack, 512, 16>(p, stream);
    } else if (cols <= 16384) {
        launch_block<Pack, 512, 32>(p, stream);
    } else {
        launch_block<Pack, 1024, 32>(p, stream);
    }
}

// y[rows][cols], mean[rows] and rstd[rows] of x[rows][cols] with weight[cols] and bias[cols].
extern "C" int layer_norm(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                          int rows, int cols, float eps, hipStream_t stream) {
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(y) | reinterpret_cast<uintptr_t>(x) |
                                reinterpret_cast<uintptr_t>(weight) | reinterpret_cast<uintptr_t>(bias);
    if (cols % 4 == 0 && addresses % sizeof(float4) == 0) {
        const Arguments<float4> p = {reinterpret_cast<float4*>(y), mean, rstd, reinterpret_cast<const float4*>(x),
                                     reinterpret_cast<const float4*>(weight), reinterpret_cast<const float4*>(bias),
                                     rows, cols / 4, eps};
        launch(p, stream);
    } else {
        const Arguments<float> p = {y, mean, rstd, x, weight, bias, rows, cols, eps};
        launch(p, stream);
    }
    return hipGetLastError();
}
