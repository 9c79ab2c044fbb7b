#include <hip/hip_runtime.h>

// One block of 256 threads a row.
__global__ void row_dot_kernel(float* y, const float* a, const float* b, int cols, float scale) {
    __shared__ float sums[256];
    const long long start = static_cast<long long>(blockIdx.x) * cols;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 256) sum += a[start + j] * b[start + j];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = sums[0] * scale;
}

extern "C" int row_dot(float* y, const float* a, const float* b, int rows, int cols, float scale, hipStream_t stream) {
    row_dot_kernel<<<rows, 256, 0, stream>>>(y, a, b, cols, scale);
    return hipGetLastError();
}
