// The device functions that HIP has and CUDA has not: wave operations without a mask, atomic minimum and maximum of
// floats, atomics of unsigned long, and arithmetic on vector types.
#pragma once

#include <cuda_bf16.h>  // before the macros: these two declare the old shuffles
#include <cuda_fp16.h>

#include <type_traits>

#ifdef __CUDACC__

#define __AMDGCN_WAVEFRONT_SIZE 32
#define HIP_ON_CUDA_FULL_MASK 0xffffffffu

// Macros, because CUDA still declares the old functions without a mask for some types.
#define __shfl(...) __shfl_sync(HIP_ON_CUDA_FULL_MASK, __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(HIP_ON_CUDA_FULL_MASK, __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(HIP_ON_CUDA_FULL_MASK, __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(HIP_ON_CUDA_FULL_MASK, __VA_ARGS__)
#define __ballot(predicate) static_cast<unsigned long long>(__ballot_sync(HIP_ON_CUDA_FULL_MASK, predicate))
#define __any(predicate) __any_sync(HIP_ON_CUDA_FULL_MASK, predicate)
#define __all(predicate) __all_sync(HIP_ON_CUDA_FULL_MASK, predicate)
#define __activemask() static_cast<unsigned long long>(__activemask())

__device__ inline unsigned __lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ inline long long wall_clock64() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

// Compare and swap until the stored value is the wanted one of the two. Returns the old value.
__device__ inline float atomicMin(float* address, float value) {
  int before = __float_as_int(*address), seen;
  do {
    seen = before;
    if (!(value < __int_as_float(seen))) break;
    before = atomicCAS(reinterpret_cast<int*>(address), seen, __float_as_int(value));
  } while (before != seen);
  return __int_as_float(before);
}
__device__ inline float atomicMax(float* address, float value) {
  int before = __float_as_int(*address), seen;
  do {
    seen = before;
    if (!(value > __int_as_float(seen))) break;
    before = atomicCAS(reinterpret_cast<int*>(address), seen, __float_as_int(value));
  } while (before != seen);
  return __int_as_float(before);
}
__device__ inline double atomicMin(double* address, double value) {
  unsigned long long before = __double_as_longlong(*address), seen;
  do {
    seen = before;
    if (!(value < __longlong_as_double(seen))) break;
    before = atomicCAS(reinterpret_cast<unsigned long long*>(address), seen, __double_as_longlong(value));
  } while (before != seen);
  return __longlong_as_double(before);
}
__device__ inline double atomicMax(double* address, double value) {
  unsigned long long before = __double_as_longlong(*address), seen;
  do {
    seen = before;
    if (!(value > __longlong_as_double(seen))) break;
    before = atomicCAS(reinterpret_cast<unsigned long long*>(address), seen, __double_as_longlong(value));
  } while (before != seen);
  return __longlong_as_double(before);
}
__device__ inline float atomicSub(float* address, float value) { return atomicAdd(address, -value); }
__device__ inline double atomicSub(double* address, double value) { return atomicAdd(address, -value); }
__device__ inline double atomicExch(double* address, double value) {
  return __longlong_as_double(atomicExch(reinterpret_cast<unsigned long long*>(address), __double_as_longlong(value)));
}
__device__ inline float unsafeAtomicAdd(float* address, float value) { return atomicAdd(address, value); }
__device__ inline double unsafeAtomicAdd(double* address, double value) { return atomicAdd(address, value); }

#define HIP_ON_CUDA_LONG_ATOMIC(name)                                                      \
  __device__ inline unsigned long name(unsigned long* address, unsigned long value) {      \
    return name(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value)); \
  }
HIP_ON_CUDA_LONG_ATOMIC(atomicAdd)
HIP_ON_CUDA_LONG_ATOMIC(atomicMin)
HIP_ON_CUDA_LONG_ATOMIC(atomicMax)
HIP_ON_CUDA_LONG_ATOMIC(atomicExch)
HIP_ON_CUDA_LONG_ATOMIC(atomicAnd)
HIP_ON_CUDA_LONG_ATOMIC(atomicOr)
HIP_ON_CUDA_LONG_ATOMIC(atomicXor)
#undef HIP_ON_CUDA_LONG_ATOMIC
__device__ inline unsigned long atomicCAS(unsigned long* address, unsigned long expected, unsigned long value) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(value));
}

#endif  // __CUDACC__

// Arithmetic on vectors, part by part, and with a scalar. Templates, so that a source's own operator is the better
// match.
namespace hip_on_cuda {
template <class V>
struct Parts : std::integral_constant<int, 0> {};
#define HIP_ON_CUDA_PARTS(name)                                            \
  template <> struct Parts<name##2> : std::integral_constant<int, 2> {};   \
  template <> struct Parts<name##3> : std::integral_constant<int, 3> {};   \
  template <> struct Parts<name##4> : std::integral_constant<int, 4> {};
HIP_ON_CUDA_PARTS(float)
HIP_ON_CUDA_PARTS(int)
HIP_ON_CUDA_PARTS(uint)
#undef HIP_ON_CUDA_PARTS
template <>
struct Parts<double2> : std::integral_constant<int, 2> {};

template <class V>
using IfVector = std::enable_if_t<(Parts<V>::value > 0), int>;
template <class S>
using IfScalar = std::enable_if_t<std::is_arithmetic<S>::value, int>;

template <class V, class S>
__host__ __device__ inline V broadcast(S scalar) {
  V result;
  result.x = result.y = static_cast<decltype(result.x)>(scalar);
  if constexpr (Parts<V>::value > 2) result.z = result.x;
  if constexpr (Parts<V>::value > 3) result.w = result.x;
  return result;
}
}  // namespace hip_on_cuda

#define HIP_ON_CUDA_OPERATOR(op)                                                                             \
  template <class V, hip_on_cuda::IfVector<V> = 0>                                                           \
  __host__ __device__ inline V operator op(V a, const V& b) {                                                \
    a.x = a.x op b.x;                                                                                        \
    a.y = a.y op b.y;                                                                                        \
    if constexpr (hip_on_cuda::Parts<V>::value > 2) a.z = a.z op b.z;                                        \
    if constexpr (hip_on_cuda::Parts<V>::value > 3) a.w = a.w op b.w;                                        \
    return a;                                                                                                \
  }                                                                                                          \
  template <class V, class S, hip_on_cuda::IfVector<V> = 0, hip_on_cuda::IfScalar<S> = 0>                    \
  __host__ __device__ inline V operator op(const V& a, S b) {                                                \
    return a op hip_on_cuda::broadcast<V>(b);                                                                \
  }                                                                                                          \
  template <class V, class S, hip_on_cuda::IfVector<V> = 0, hip_on_cuda::IfScalar<S> = 0>                    \
  __host__ __device__ inline V operator op(S a, const V& b) {                                                \
    return hip_on_cuda::broadcast<V>(a) op b;                                                                \
  }                                                                                                          \
  template <class V, class B, hip_on_cuda::IfVector<V> = 0>                                                  \
  __host__ __device__ inline V& operator op##=(V& a, const B& b) {                                           \
    return a = a op b;                                                                                       \
  }
HIP_ON_CUDA_OPERATOR(+)
HIP_ON_CUDA_OPERATOR(-)
HIP_ON_CUDA_OPERATOR(*)
HIP_ON_CUDA_OPERATOR(/)
#undef HIP_ON_CUDA_OPERATOR
