// HIP on NVIDIA: HIP's names for the CUDA runtime, so that nvcc builds an unchanged HIP source (C++17, nvcc 12 or 13).
//
// A wave has 32 lanes here: sources must use warpSize. Shuffles and votes without a mask use the full mask, so all
// lanes of a wave must reach them. _Float16 and the amdgcn builtins do not exist; half and bfloat16 do.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>

#include "cuda_device.h"

#define AKARENA_TARGET_CUDA 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_NVIDIA__ 1
#ifdef __CUDA_ARCH__
#define __HIP_DEVICE_COMPILE__ 1
#endif

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipMemcpyKind = cudaMemcpyKind;
using hipFuncAttribute = cudaFuncAttribute;

#define hipSuccess cudaSuccess
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorInvalidConfiguration cudaErrorInvalidConfiguration
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorLaunchFailure cudaErrorLaunchFailure
#define hipErrorUnknown cudaErrorUnknown
#define hipGetLastError cudaGetLastError
#define hipPeekAtLastError cudaPeekAtLastError
#define hipGetErrorName cudaGetErrorName
#define hipGetErrorString cudaGetErrorString

#define hipMalloc cudaMalloc
#define hipFree cudaFree
#define hipMallocAsync cudaMallocAsync
#define hipFreeAsync cudaFreeAsync
#define hipHostMalloc cudaMallocHost
#define hipHostFree cudaFreeHost
#define hipMemcpy cudaMemcpy
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemset cudaMemset
#define hipMemsetAsync cudaMemsetAsync
#define hipMemcpyToSymbol cudaMemcpyToSymbol
#define hipMemcpyFromSymbol cudaMemcpyFromSymbol
#define HIP_SYMBOL(symbol) symbol
#define hipMemcpyHostToHost cudaMemcpyHostToHost
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault

#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamCreate cudaStreamCreate
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamDefault cudaStreamDefault
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipGetDevice cudaGetDevice
#define hipSetDevice cudaSetDevice
#define hipGetDeviceCount cudaGetDeviceCount

#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipFuncAttributePreferredSharedMemoryCarveout cudaFuncAttributePreferredSharedMemoryCarveout
#define hipFuncSetAttribute cudaFuncSetAttribute
#define hipOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessor

// CUDA's properties, and the fields that only HIP has or that CUDA 13 moved to attributes.
struct hipDeviceProp_t : cudaDeviceProp {
  char gcnArchName[256];
#if CUDART_VERSION >= 13000
  int clockRate, memoryClockRate;
#endif
  std::size_t maxSharedMemoryPerMultiProcessor;
};
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  *properties = hipDeviceProp_t();
  if (const cudaError_t error = cudaGetDeviceProperties(properties, device)) return error;
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "sm_%d%d", properties->major,
                properties->minor);
  properties->maxSharedMemoryPerMultiProcessor = properties->sharedMemPerMultiprocessor;
#if CUDART_VERSION >= 13000
  cudaDeviceGetAttribute(&properties->clockRate, cudaDevAttrClockRate, device);
  cudaDeviceGetAttribute(&properties->memoryClockRate, cudaDevAttrMemoryClockRate, device);
#endif
  return hipSuccess;
}

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
