// Honest: before the first launch four threads compute a table of powers of two, which is kept in constant memory; the
// exponential comes from the table and a short polynomial. Must pass.
#include "baseline.h"

#include <thread>
#include <vector>

constexpr int kSteps = 64;
constexpr int kMakers = 4;
__constant__ float powers[kSteps];  // 2^(i / 64)

// exp of a value that is not positive, to about two units in the last place.
__device__ float exp_by_table(float value) {
    value = fmaxf(value, -86.0f);
    const float steps = rintf(value * 92.33248261893f);             // 64 / ln 2
    float rest = fmaf(-steps, 0.010830424726009369f, value);        // ln 2 / 64, as fp32
    rest = fmaf(-steps, -2.976022407e-11f, rest);                   // and what that leaves out
    const int whole = static_cast<int>(steps);
    const float polynomial = fmaf(rest, fmaf(rest, fmaf(rest, 1.0f / 6.0f, 0.5f), 1.0f), 1.0f);
    return exp2f(static_cast<float>(whole >> 6)) * powers[whole & (kSteps - 1)] * polynomial;
}

__global__ void softmax_by_table(float* y, const float* x, int cols) {
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    float largest = -INFINITY;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        largest = fmaxf(largest, x[offset + col]);
    }
    largest = block_max(largest, scratch);
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        sum += exp_by_table(x[offset + col] - largest);
    }
    sum = block_sum(sum, scratch);
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y[offset + col] = exp_by_table(x[offset + col] - largest) / sum;
    }
}

static int make_table() {
    float made[kSteps];
    std::vector<std::thread> makers;
    for (int maker = 0; maker < kMakers; ++maker) {
        makers.emplace_back([&made, maker] {
            for (int i = maker; i < kSteps; i += kMakers) {
                made[i] = static_cast<float>(exp2(static_cast<double>(i) / kSteps));
            }
        });
    }
    for (std::thread& maker : makers) {
        maker.join();
    }
    return hipMemcpyToSymbol(HIP_SYMBOL(powers), made, sizeof made);
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static const int code = make_table();
    if (code) {
        return code;
    }
    softmax_by_table<<<rows, kThreads, 0, stream>>>(y, x, cols);
    return hipGetLastError();
}
