// Half precision for device code, where ROCm's own header of this name is not installed.
//
// __half is the compiler's _Float16, so it has arithmetic and conversions by itself. That accepts a few mixed expressions
// that ROCm's class refuses. Only what kernels commonly use is here.
#pragma once
#include <hip/hip_runtime.h>

using __half = _Float16;
using half = __half;
#define AKARENA_HD __host__ __device__ inline __attribute__((always_inline))
#define AKARENA_D __device__ inline __attribute__((always_inline))

struct alignas(4) __half2 {
  __half x, y;
  __half2() = default;
  AKARENA_HD __half2(__half a, __half b) : x(a), y(b) {}
  AKARENA_HD explicit __half2(__half a) : x(a), y(a) {}
};
using half2 = __half2;
AKARENA_HD __half2 make_half2(__half a, __half b) { return {a, b}; }

#define AKARENA_OPERATOR(op)                                                                             \
  AKARENA_HD __half2 operator op(__half2 a, __half2 b) { return {__half(a.x op b.x), __half(a.y op b.y)}; } \
  AKARENA_HD __half2& operator op##=(__half2& a, __half2 b) { return a = a op b; }
AKARENA_OPERATOR(+)
AKARENA_OPERATOR(-)
AKARENA_OPERATOR(*)
AKARENA_OPERATOR(/)
#undef AKARENA_OPERATOR
AKARENA_HD __half2 operator-(__half2 a) { return {__half(-a.x), __half(-a.y)}; }
AKARENA_HD bool operator==(__half2 a, __half2 b) { return a.x == b.x && a.y == b.y; }
AKARENA_HD bool operator!=(__half2 a, __half2 b) { return !(a == b); }

// Conversions.
AKARENA_HD float __half2float(__half a) { return float(a); }
AKARENA_HD __half __float2half(float a) { return __half(a); }
AKARENA_HD __half __float2half_rn(float a) { return __half(a); }
AKARENA_D __half __float2half_rz(float a) { return __ocml_cvtrtz_f16_f32(a); }
AKARENA_HD __half __double2half(double a) { return __half(a); }
AKARENA_HD __half __int2half_rn(int a) { return __half(a); }
AKARENA_HD __half __uint2half_rn(unsigned a) { return __half(a); }
AKARENA_HD int __half2int_rz(__half a) { return int(a); }
AKARENA_D int __half2int_rn(__half a) { return int(__builtin_rintf(float(a))); }
AKARENA_HD unsigned __half2uint_rz(__half a) { return unsigned(a); }
AKARENA_HD short __half_as_short(__half a) { return __builtin_bit_cast(short, a); }
AKARENA_HD unsigned short __half_as_ushort(__half a) { return __builtin_bit_cast(unsigned short, a); }
AKARENA_HD __half __short_as_half(short a) { return __builtin_bit_cast(__half, a); }
AKARENA_HD __half __ushort_as_half(unsigned short a) { return __builtin_bit_cast(__half, a); }
AKARENA_HD __half2 __half2half2(__half a) { return {a, a}; }
AKARENA_HD __half2 __halves2half2(__half a, __half b) { return {a, b}; }
AKARENA_HD __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
AKARENA_HD __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
AKARENA_HD __half2 __float22half2_rn(float2 a) { return {__half(a.x), __half(a.y)}; }
AKARENA_HD float2 __half22float2(__half2 a) { return make_float2(float(a.x), float(a.y)); }
AKARENA_HD __half __low2half(__half2 a) { return a.x; }
AKARENA_HD __half __high2half(__half2 a) { return a.y; }
AKARENA_HD float __low2float(__half2 a) { return float(a.x); }
AKARENA_HD float __high2float(__half2 a) { return float(a.y); }
AKARENA_HD __half2 __lowhigh2highlow(__half2 a) { return {a.y, a.x}; }

// Arithmetic.
AKARENA_HD __half __hadd(__half a, __half b) { return a + b; }
AKARENA_HD __half __hsub(__half a, __half b) { return a - b; }
AKARENA_HD __half __hmul(__half a, __half b) { return a * b; }
AKARENA_HD __half __hdiv(__half a, __half b) { return a / b; }
AKARENA_HD __half __hneg(__half a) { return -a; }
AKARENA_D __half __habs(__half a) { return __ocml_fabs_f16(a); }
AKARENA_D __half __hfma(__half a, __half b, __half c) { return __ocml_fma_f16(a, b, c); }
AKARENA_D __half __hmax(__half a, __half b) { return __ocml_fmax_f16(a, b); }
AKARENA_D __half __hmin(__half a, __half b) { return __ocml_fmin_f16(a, b); }
AKARENA_HD __half2 __hadd2(__half2 a, __half2 b) { return a + b; }
AKARENA_HD __half2 __hsub2(__half2 a, __half2 b) { return a - b; }
AKARENA_HD __half2 __hmul2(__half2 a, __half2 b) { return a * b; }
AKARENA_HD __half2 __h2div(__half2 a, __half2 b) { return a / b; }
AKARENA_HD __half2 __hneg2(__half2 a) { return -a; }
AKARENA_D __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
AKARENA_D __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
AKARENA_D __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
AKARENA_D __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }

// Comparisons.
AKARENA_HD bool __heq(__half a, __half b) { return a == b; }
AKARENA_HD bool __hne(__half a, __half b) { return a != b; }
AKARENA_HD bool __hlt(__half a, __half b) { return a < b; }
AKARENA_HD bool __hle(__half a, __half b) { return a <= b; }
AKARENA_HD bool __hgt(__half a, __half b) { return a > b; }
AKARENA_HD bool __hge(__half a, __half b) { return a >= b; }
AKARENA_HD bool __hisnan(__half a) { return a != a; }
AKARENA_D int __hisinf(__half a) { return __ocml_isinf_f16(a); }

// Functions, for one and for two values.
#define AKARENA_FUNCTION(name)                              \
  AKARENA_D __half h##name(__half a) { return __ocml_##name##_f16(a); } \
  AKARENA_D __half2 h2##name(__half2 a) { return {h##name(a.x), h##name(a.y)}; }
AKARENA_FUNCTION(sqrt)
AKARENA_FUNCTION(rsqrt)
AKARENA_FUNCTION(exp)
AKARENA_FUNCTION(exp2)
AKARENA_FUNCTION(exp10)
AKARENA_FUNCTION(log)
AKARENA_FUNCTION(log2)
AKARENA_FUNCTION(log10)
AKARENA_FUNCTION(sin)
AKARENA_FUNCTION(cos)
AKARENA_FUNCTION(floor)
AKARENA_FUNCTION(ceil)
AKARENA_FUNCTION(trunc)
AKARENA_FUNCTION(rint)
#undef AKARENA_FUNCTION
AKARENA_D __half hrcp(__half a) { return __half(1) / a; }
AKARENA_D __half2 h2rcp(__half2 a) { return {hrcp(a.x), hrcp(a.y)}; }

// Exchange between lanes and cached loads.
#define AKARENA_SHUFFLE(name, index)                                                     \
  AKARENA_D __half name(__half a, index lane, int width = warpSize) {                    \
    return __ushort_as_half((unsigned short)name(int(__half_as_ushort(a)), lane, width)); \
  }                                                                                      \
  AKARENA_D __half2 name(__half2 a, index lane, int width = warpSize) {                  \
    return __builtin_bit_cast(__half2, name(__builtin_bit_cast(int, a), lane, width));   \
  }
AKARENA_SHUFFLE(__shfl, int)
AKARENA_SHUFFLE(__shfl_up, unsigned)
AKARENA_SHUFFLE(__shfl_down, unsigned)
AKARENA_SHUFFLE(__shfl_xor, int)
#undef AKARENA_SHUFFLE
AKARENA_D __half __ldg(const __half* a) { return *a; }
AKARENA_D __half2 __ldg(const __half2* a) { return *a; }
#undef AKARENA_HD
#undef AKARENA_D
