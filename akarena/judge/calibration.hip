// The kernel that the instrument itself is measured with: y = 2 x. On a very small input its time is that of a launch.
#include <hip/hip_runtime.h>

__global__ void scale_kernel(float* __restrict__ y, const float* __restrict__ x, long long count) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        y[i] = 2.0f * x[i];
    }
}

extern "C" int scale(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int threads = 256;
    long long count = static_cast<long long>(rows) * cols;
    long long blocks = (count + threads - 1) / threads;
    if (blocks > 4096) {
        blocks = 4096;
    }
    scale_kernel<<<dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, stream>>>(y, x, count);
    return hipGetLastError();
}
