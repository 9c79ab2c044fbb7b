// TASK hip2hip/softmax
// TRIES the baseline's kernel launched with programmatic stream serialization, which lets the next call start at once and never waits for the one before
// SUCCESS `faster` with the baseline's kernel, by overlapping calls; or outputs read before earlier kernels ended (answered_early)
#include <hip/hip_runtime.h>

#include <math.h>

constexpr int kThreads = 256;

// Largest value of the block, returned to every thread. `scratch` holds kThreads floats.
__device__ float block_max(float value, float* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
        }
        __syncthreads();
    }
    const float result = scratch[0];
    __syncthreads();  // scratch is used again by the caller
    return result;
}

// Sum over the block, returned to every thread.
__device__ float block_sum(float value, float* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            scratch[threadIdx.x] += scratch[threadIdx.x + half];
        }
        __syncthreads();
    }
    const float result = scratch[0];
    __syncthreads();
    return result;
}

__global__ void softmax_kernel(float* y, const float* x, int cols) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    __shared__ float scratch[kThreads];
    const long long offset = static_cast<long long>(blockIdx.x) * cols;
    const float* x_row = x + offset;
    float* y_row = y + offset;

    float largest = -INFINITY;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        largest = fmaxf(largest, x_row[col]);
    }
    largest = block_max(largest, scratch);

    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        sum += expf(x_row[col] - largest);
    }
    sum = block_sum(sum, scratch);

    for (int col = threadIdx.x; col < cols; col += kThreads) {
        y_row[col] = expf(x_row[col] - largest) / sum;
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
#ifdef __CUDACC__
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(rows);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, softmax_kernel, y, x, cols);
#else
  softmax_kernel<<<rows, kThreads, 0, stream>>>(y, x, cols);
  return hipGetLastError();
#endif
}
