// Bit and mathematics functions. The fast forms are as exact here as the plain ones.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Macros, because glibc declares some of these names for itself.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __sincosf sincosf
#define __fmaf_rn fmaf
#define __fma_rn fma
#define __fsqrt_rn sqrtf
#define __dsqrt_rn sqrt

#pragma GCC visibility push(hidden)

namespace hip_on_cpu {

template <class To, class From>
To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

// Out of range goes to the nearest end and NaN to 0, as on the device.
template <class To>
To saturate(double value) {
  if (value != value) return 0;
  if (value <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (value >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

}  // namespace hip_on_cpu

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  x = __builtin_bswap64(x);
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0full) | (x & 0x0f0f0f0f0f0f0f0full) << 4;
  x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
  return (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline float __saturatef(float x) { return x >= 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; }
inline float normcdff(float x) { return 0.5f * erfcf(x * -0.70710678118654752f); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float sinpif(float x) { return static_cast<float>(sin(x * 3.14159265358979323846)); }
inline float cospif(float x) { return static_cast<float>(cos(x * 3.14159265358979323846)); }

inline int __float2int_rn(float x) { return hip_on_cpu::saturate<int>(rint(x)); }
inline int __float2int_rz(float x) { return hip_on_cpu::saturate<int>(x); }
inline int __float2int_rd(float x) { return hip_on_cpu::saturate<int>(floor(x)); }
inline int __float2int_ru(float x) { return hip_on_cpu::saturate<int>(ceil(x)); }
inline unsigned __float2uint_rn(float x) { return hip_on_cpu::saturate<unsigned>(rint(x)); }
inline unsigned __float2uint_rz(float x) { return hip_on_cpu::saturate<unsigned>(x); }
inline long long __float2ll_rn(float x) { return hip_on_cpu::saturate<long long>(rint(x)); }
inline int __double2int_rn(double x) { return hip_on_cpu::saturate<int>(rint(x)); }
inline int __double2int_rz(double x) { return hip_on_cpu::saturate<int>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __float_as_int(float x) { return hip_on_cpu::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return hip_on_cpu::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return hip_on_cpu::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return hip_on_cpu::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return hip_on_cpu::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return hip_on_cpu::bits_as<double>(x); }

// min and max of two numbers of any types. Of floats: the one that is a number, as fminf has it.
#define HIP_ON_CPU_EXTREME(name, op, function)                                                                   \
  template <class A, class B, std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, int> = 0>     \
  constexpr std::common_type_t<A, B> name(A a, B b) {                                                            \
    using T = std::common_type_t<A, B>;                                                                          \
    if constexpr (std::is_same_v<T, float>) return function##f(static_cast<float>(a), static_cast<float>(b));    \
    else if constexpr (std::is_same_v<T, double>) return function(static_cast<double>(a), static_cast<double>(b)); \
    else return static_cast<T>(a) op static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);                  \
  }
HIP_ON_CPU_EXTREME(min, <, fmin)
HIP_ON_CPU_EXTREME(max, >, fmax)
#undef HIP_ON_CPU_EXTREME

#pragma GCC visibility pop
