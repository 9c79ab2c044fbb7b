// The host side of HIP that a kernel library uses. Device memory is host memory; everything is done on return.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cpu_launch.h"

enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault,
};
enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize = 8, hipFuncAttributePreferredSharedMemoryCarveout };
constexpr unsigned hipStreamDefault = 0;
constexpr unsigned hipStreamNonBlocking = 1;

struct hipDeviceProp_t {
  char name[256];
  char gcnArchName[256];
  std::size_t totalGlobalMem, sharedMemPerBlock, maxSharedMemoryPerMultiProcessor;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int multiProcessorCount, maxThreadsPerMultiProcessor, clockRate, memoryClockRate, memoryBusWidth, l2CacheSize;
  int major, minor;
};

#pragma GCC visibility push(hidden)

template <class T>
hipError_t hipMalloc(T** pointer, std::size_t bytes) {
  *pointer = static_cast<T*>(std::malloc(bytes ? bytes : 1));
  if (!*pointer) return hipErrorOutOfMemory;
  std::memset(static_cast<void*>(*pointer), 0xff, bytes);  // NaN: new device memory is not zero
  return hipSuccess;
}
inline hipError_t hipFree(void* pointer) {
  std::free(pointer);
  return hipSuccess;
}
template <class T>
hipError_t hipMallocAsync(T** pointer, std::size_t bytes, hipStream_t) { return hipMalloc(pointer, bytes); }
inline hipError_t hipFreeAsync(void* pointer, hipStream_t) { return hipFree(pointer); }
template <class T>
hipError_t hipHostMalloc(T** pointer, std::size_t bytes, unsigned = 0) { return hipMalloc(pointer, bytes); }
inline hipError_t hipHostFree(void* pointer) { return hipFree(pointer); }

inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind) {
  std::memmove(to, from, bytes);
  return hipSuccess;
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                 hipStream_t = nullptr) {
  return hipMemcpy(to, from, bytes, kind);
}
inline hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  std::memset(to, value, bytes);
  return hipSuccess;
}
inline hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t = nullptr) {
  return hipMemset(to, value, bytes);
}
template <class T>
hipError_t hipMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                             hipMemcpyKind kind = hipMemcpyHostToDevice) {
  if (offset > sizeof symbol || bytes > sizeof symbol - offset) return hipErrorInvalidValue;
  return hipMemcpy(reinterpret_cast<char*>(&symbol) + offset, from, bytes, kind);
}
template <class T>
hipError_t hipMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                               hipMemcpyKind kind = hipMemcpyDeviceToHost) {
  if (offset > sizeof symbol || bytes > sizeof symbol - offset) return hipErrorInvalidValue;
  return hipMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes, kind);
}
#define HIP_SYMBOL(symbol) symbol

inline hipError_t hipGetLastError() { return static_cast<hipError_t>(hip_on_cpu::last_error.exchange(hipSuccess)); }
inline hipError_t hipPeekAtLastError() { return static_cast<hipError_t>(hip_on_cpu::last_error.load()); }
inline const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case hipSuccess: return "hipSuccess";
    case hipErrorInvalidValue: return "hipErrorInvalidValue";
    case hipErrorOutOfMemory: return "hipErrorOutOfMemory";
    case hipErrorInvalidConfiguration: return "hipErrorInvalidConfiguration";
    case hipErrorNotSupported: return "hipErrorNotSupported";
    case hipErrorLaunchFailure: return "hipErrorLaunchFailure";
    default: return "hipErrorUnknown";
  }
}
inline const char* hipGetErrorString(hipError_t error) {
  switch (error) {
    case hipSuccess: return "no error";
    case hipErrorInvalidValue: return "invalid argument";
    case hipErrorOutOfMemory: return "out of memory";
    case hipErrorInvalidConfiguration: return "invalid configuration argument";
    case hipErrorNotSupported: return "operation not supported";
    case hipErrorLaunchFailure: return "unspecified launch failure";
    default: return "unknown error";
  }
}

inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamCreate(hipStream_t* stream) {
  *stream = nullptr;
  return hipSuccess;
}
inline hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) { return hipStreamCreate(stream); }
inline hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }

inline hipError_t hipGetDeviceCount(int* count) {
  *count = 1;
  return hipSuccess;
}
inline hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
inline hipError_t hipSetDevice(int device) { return device == 0 ? hipSuccess : hipErrorInvalidValue; }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  if (device != 0) return hipErrorInvalidValue;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "HIP on a CPU");
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "cpu");
  properties->totalGlobalMem = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  properties->sharedMemPerBlock = properties->maxSharedMemoryPerMultiProcessor = hip_on_cpu::kMaxSharedBytes;
  properties->regsPerBlock = 65536;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  for (int& limit : properties->maxThreadsDim) limit = 1024;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->multiProcessorCount = static_cast<int>(hip_on_cpu::worker_limit());
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 4 << 20;
  properties->major = 9;
  properties->minor = 4;
  return hipSuccess;
}
template <class F>
hipError_t hipFuncSetAttribute(F, hipFuncAttribute attribute, int value) {
  if (attribute != hipFuncAttributeMaxDynamicSharedMemorySize) return hipSuccess;
  return value > static_cast<int>(hip_on_cpu::kMaxSharedBytes) ? hipErrorInvalidValue : hipSuccess;
}
template <class F>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int block_threads, std::size_t) {
  if (block_threads < 1 || block_threads > 1024) return hipErrorInvalidValue;
  *blocks = 2048 / block_threads;
  return hipSuccess;
}

#pragma GCC visibility pop
