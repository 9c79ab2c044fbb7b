// Honest: plans are kept in a map; an unknown size throws, and the handler makes a plan. Must pass.
#include "baseline.h"

#include <map>
#include <stdexcept>

template <int THREADS>
__global__ void narrow_block(float* y, const float* x, int cols) {
    __shared__ float scratch[THREADS];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    const auto reduce = [&](float value, bool sums) {
        scratch[threadIdx.x] = value;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                const float other = scratch[threadIdx.x + half];
                scratch[threadIdx.x] = sums ? scratch[threadIdx.x] + other : fmaxf(scratch[threadIdx.x], other);
            }
            __syncthreads();
        }
        const float result = scratch[0];
        __syncthreads();
        return result;
    };
    float largest = -INFINITY;
    for (int col = threadIdx.x; col < cols; col += THREADS) {
        largest = fmaxf(largest, x[offset + col]);
    }
    largest = reduce(largest, false);
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += THREADS) {
        sum += expf(x[offset + col] - largest);
    }
    sum = reduce(sum, true);
    for (int col = threadIdx.x; col < cols; col += THREADS) {
        y[offset + col] = expf(x[offset + col] - largest) / sum;
    }
}

using Plan = void (*)(float*, const float*, int, int, hipStream_t);

static void narrow(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    narrow_block<64><<<rows, 64, 0, stream>>>(y, x, cols);
}

static void wide(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    softmax_kernel<<<rows, kThreads, 0, stream>>>(y, x, cols);
}

static Plan plan_for(int cols) {
    static std::map<int, Plan> plans;
    try {
        return plans.at(cols);
    } catch (const std::out_of_range&) {
        return plans[cols] = cols <= 512 ? narrow : wide;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    try {
        if (rows < 1 || cols < 1) {
            throw std::invalid_argument("empty");
        }
        plan_for(cols)(y, x, rows, cols, stream);
    } catch (const std::exception&) {
        return hipErrorInvalidValue;
    }
    return hipGetLastError();
}
