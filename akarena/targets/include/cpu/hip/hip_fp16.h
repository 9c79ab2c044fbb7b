// half and half2 on a CPU.
#pragma once

#include "cpu_float16.h"
#include "hip_runtime.h"

using __half = hip_on_cpu::Float16<hip_on_cpu::HalfFormat>;
using __half2 = hip_on_cpu::Float16Pair<hip_on_cpu::HalfFormat>;
using half = __half;
using half2 = __half2;

inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline __half __double2half(double x) { return x; }
inline float __half2float(__half x) { return x; }
inline __half __int2half_rn(int x) { return x; }
inline __half __uint2half_rn(unsigned x) { return x; }
inline __half __short2half_rn(short x) { return x; }
inline __half __ushort2half_rn(unsigned short x) { return x; }
inline int __half2int_rn(__half x) { return __float2int_rn(x); }
inline int __half2int_rz(__half x) { return __float2int_rz(x); }
inline unsigned __half2uint_rz(__half x) { return __float2uint_rz(x); }
inline unsigned short __half_as_ushort(__half x) { return x.data; }
inline short __half_as_short(__half x) { return static_cast<short>(x.data); }
inline __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
inline __half __short_as_half(short bits) { return __half::from_bits(static_cast<unsigned short>(bits)); }

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {x, x}; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
inline float2 __half22float2(__half2 v) { return {v.x.f(), v.y.f()}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
