// bfloat16 for device code, where ROCm's own header of this name is not installed.
//
// __hip_bfloat16 is the compiler's __bf16, so it has arithmetic and conversions by itself. That accepts a few mixed
// expressions that ROCm's class refuses. Only what kernels commonly use is here.
#pragma once
#include <hip/hip_runtime.h>

using __hip_bfloat16 = __bf16;
using hip_bfloat16 = __hip_bfloat16;
#define AKARENA_HD __host__ __device__ inline __attribute__((always_inline))
#define AKARENA_D __device__ inline __attribute__((always_inline))

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
  AKARENA_HD __hip_bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) : x(a), y(b) {}
};

#define AKARENA_OPERATOR(op)                                                         \
  AKARENA_HD __hip_bfloat162 operator op(__hip_bfloat162 a, __hip_bfloat162 b) {       \
    return {__hip_bfloat16(a.x op b.x), __hip_bfloat16(a.y op b.y)};                 \
  }                                                                                  \
  AKARENA_HD __hip_bfloat162& operator op##=(__hip_bfloat162& a, __hip_bfloat162 b) { \
    return a = a op b;                                                               \
  }
AKARENA_OPERATOR(+)
AKARENA_OPERATOR(-)
AKARENA_OPERATOR(*)
AKARENA_OPERATOR(/)
#undef AKARENA_OPERATOR

// Conversions.
AKARENA_HD float __bfloat162float(__hip_bfloat16 a) { return float(a); }
AKARENA_HD __hip_bfloat16 __float2bfloat16(float a) { return __hip_bfloat16(a); }
AKARENA_HD __hip_bfloat16 __float2bfloat16_rn(float a) { return __hip_bfloat16(a); }
AKARENA_HD __hip_bfloat16 __double2bfloat16(double a) { return __hip_bfloat16(a); }
AKARENA_HD short __bfloat16_as_short(__hip_bfloat16 a) { return __builtin_bit_cast(short, a); }
AKARENA_HD unsigned short __bfloat16_as_ushort(__hip_bfloat16 a) { return __builtin_bit_cast(unsigned short, a); }
AKARENA_HD __hip_bfloat16 __short_as_bfloat16(short a) { return __builtin_bit_cast(__hip_bfloat16, a); }
AKARENA_HD __hip_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __builtin_bit_cast(__hip_bfloat16, a); }
AKARENA_HD __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 a) { return {a, a}; }
AKARENA_HD __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return {a, b}; }
AKARENA_HD __hip_bfloat162 __float2bfloat162_rn(float a) { return {__hip_bfloat16(a), __hip_bfloat16(a)}; }
AKARENA_HD __hip_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__hip_bfloat16(a), __hip_bfloat16(b)}; }
AKARENA_HD __hip_bfloat162 __float22bfloat162_rn(float2 a) { return {__hip_bfloat16(a.x), __hip_bfloat16(a.y)}; }
AKARENA_HD float2 __bfloat1622float2(__hip_bfloat162 a) { return make_float2(float(a.x), float(a.y)); }
AKARENA_HD __hip_bfloat16 __low2bfloat16(__hip_bfloat162 a) { return a.x; }
AKARENA_HD __hip_bfloat16 __high2bfloat16(__hip_bfloat162 a) { return a.y; }
AKARENA_HD float __low2float(__hip_bfloat162 a) { return float(a.x); }
AKARENA_HD float __high2float(__hip_bfloat162 a) { return float(a.y); }

// Arithmetic.
AKARENA_HD __hip_bfloat16 __hadd(__hip_bfloat16 a, __hip_bfloat16 b) { return a + b; }
AKARENA_HD __hip_bfloat16 __hsub(__hip_bfloat16 a, __hip_bfloat16 b) { return a - b; }
AKARENA_HD __hip_bfloat16 __hmul(__hip_bfloat16 a, __hip_bfloat16 b) { return a * b; }
AKARENA_HD __hip_bfloat16 __hdiv(__hip_bfloat16 a, __hip_bfloat16 b) { return a / b; }
AKARENA_HD __hip_bfloat16 __hneg(__hip_bfloat16 a) { return -a; }
AKARENA_HD __hip_bfloat16 __habs(__hip_bfloat16 a) { return __hip_bfloat16(__builtin_fabsf(float(a))); }
AKARENA_D __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __hip_bfloat16(__builtin_fmaf(float(a), float(b), float(c)));
}
AKARENA_D __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(__builtin_fmaxf(float(a), float(b)));
}
AKARENA_D __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(__builtin_fminf(float(a), float(b)));
}
AKARENA_HD __hip_bfloat162 __hadd2(__hip_bfloat162 a, __hip_bfloat162 b) { return a + b; }
AKARENA_HD __hip_bfloat162 __hsub2(__hip_bfloat162 a, __hip_bfloat162 b) { return a - b; }
AKARENA_HD __hip_bfloat162 __hmul2(__hip_bfloat162 a, __hip_bfloat162 b) { return a * b; }
AKARENA_D __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}

// Comparisons.
AKARENA_HD bool __heq(__hip_bfloat16 a, __hip_bfloat16 b) { return a == b; }
AKARENA_HD bool __hne(__hip_bfloat16 a, __hip_bfloat16 b) { return a != b; }
AKARENA_HD bool __hlt(__hip_bfloat16 a, __hip_bfloat16 b) { return a < b; }
AKARENA_HD bool __hle(__hip_bfloat16 a, __hip_bfloat16 b) { return a <= b; }
AKARENA_HD bool __hgt(__hip_bfloat16 a, __hip_bfloat16 b) { return a > b; }
AKARENA_HD bool __hge(__hip_bfloat16 a, __hip_bfloat16 b) { return a >= b; }
AKARENA_HD bool __hisnan(__hip_bfloat16 a) { return a != a; }

// Functions: through single precision, as there are none for bfloat16 in the device library.
#define AKARENA_FUNCTION(name, single) \
  AKARENA_D __hip_bfloat16 name(__hip_bfloat16 a) { return __hip_bfloat16(single(float(a))); }
AKARENA_FUNCTION(hsqrt, ::sqrtf)
AKARENA_FUNCTION(hrsqrt, ::rsqrtf)
AKARENA_FUNCTION(hexp, ::expf)
AKARENA_FUNCTION(hexp2, ::exp2f)
AKARENA_FUNCTION(hlog, ::logf)
AKARENA_FUNCTION(hlog2, ::log2f)
AKARENA_FUNCTION(hsin, ::sinf)
AKARENA_FUNCTION(hcos, ::cosf)
#undef AKARENA_FUNCTION
AKARENA_D __hip_bfloat16 hrcp(__hip_bfloat16 a) { return __hip_bfloat16(1.0f / float(a)); }

// Exchange between lanes and cached loads.
#define AKARENA_SHUFFLE(name, index)                                                               \
  AKARENA_D __hip_bfloat16 name(__hip_bfloat16 a, index lane, int width = warpSize) {              \
    return __ushort_as_bfloat16((unsigned short)name(int(__bfloat16_as_ushort(a)), lane, width));   \
  }
AKARENA_SHUFFLE(__shfl, int)
AKARENA_SHUFFLE(__shfl_up, unsigned)
AKARENA_SHUFFLE(__shfl_down, unsigned)
AKARENA_SHUFFLE(__shfl_xor, int)
#undef AKARENA_SHUFFLE
AKARENA_D __hip_bfloat16 __ldg(const __hip_bfloat16* a) { return *a; }
#undef AKARENA_HD
#undef AKARENA_D
