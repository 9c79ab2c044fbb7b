// bfloat16 on a CPU, under both of HIP's names.
#pragma once

#include "cpu_float16.h"
#include "hip_runtime.h"

using __hip_bfloat16 = hip_on_cpu::Float16<hip_on_cpu::BFloatFormat>;
using __hip_bfloat162 = hip_on_cpu::Float16Pair<hip_on_cpu::BFloatFormat>;
using hip_bfloat16 = __hip_bfloat16;

inline __hip_bfloat16 __float2bfloat16(float x) { return x; }
inline __hip_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline __hip_bfloat16 __double2bfloat16(double x) { return x; }
inline float __bfloat162float(__hip_bfloat16 x) { return x; }
inline __hip_bfloat16 __int2bfloat16_rn(int x) { return x; }
inline int __bfloat162int_rn(__hip_bfloat16 x) { return __float2int_rn(x); }
inline unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.data; }
inline short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.data); }
inline __hip_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __hip_bfloat16::from_bits(bits); }

inline __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
inline __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
inline __hip_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
inline __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __hip_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline float2 __bfloat1622float2(__hip_bfloat162 v) { return {v.x.f(), v.y.f()}; }
inline __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
inline __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
inline float __low2float(__hip_bfloat162 v) { return v.x; }
inline float __high2float(__hip_bfloat162 v) { return v.y; }
