// TASK hip2hip/softmax
// TRIES answers right, then a thread frees the pages of the shared arena (MADV_REMOVE, allowed by the seals on the file) again and again while the judge reads and refills it
// SUCCESS void, a crash of the judge, or a pass with wrong values
#include <sys/mman.h>
#include <stdint.h>
#include <thread>
#include <chrono>
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


static std::thread* worker_thread;
extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
  softmax_kernel<<<rows, kThreads, 0, stream>>>(y, x, cols);
  hipDeviceSynchronize();
  const uintptr_t page = reinterpret_cast<uintptr_t>(y) & ~uintptr_t(4095);
  static int calls = 0;
  if (++calls > 3 && !worker_thread) {
    worker_thread = new std::thread([page] {
      for (int i = 0; i < 200000; ++i) { madvise(reinterpret_cast<void*>(page), 8192, 9 /* MADV_REMOVE */); }
    });
    worker_thread->detach();
  }
  return hipGetLastError();
}
