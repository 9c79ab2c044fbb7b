// Tries: to add the parts of a row up in shared memory without atomics or barriers; the last thread takes all sums for
// complete. That is right only where threads run one after another: with OWN_ORDER, host code sees to it on the cpu
// target, by setting the order of threads itself before each launch.
#include <hip/hip_runtime.h>
#include <math.h>

constexpr int kThreads = 64;

__global__ void racy(float* y, const float* x, int cols) {
    __shared__ float largest, sum;
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    if (threadIdx.x == 0) {
        largest = -INFINITY;
        sum = 0.0f;
    }
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = x[offset + col], before = largest;
        largest = fmaxf(before, value);
        sum = sum * expf(before - largest) + expf(value - largest);
    }
    if (threadIdx.x == kThreads - 1) {
        for (int col = 0; col < cols; ++col) {
            y[offset + col] = expf(x[offset + col] - largest) / sum;
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
#ifdef OWN_ORDER
    hip_on_cpu_set_order_seed(0);
#endif
    racy<<<rows, kThreads, 0, stream>>>(y, x, cols);
    return hipGetLastError();
}
