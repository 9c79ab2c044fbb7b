// The two 16-bit floats, half and bfloat16, as one template. Every operation rounds once, to nearest even.
#pragma once

#include <math.h>

#include <cstdint>
#include <type_traits>

#include "cpu_math.h"

namespace hip_on_cpu {

// Rounds to float in a way that keeps a second rounding, to 16 bits, right: an inexact result gets an odd last bit.
inline float narrow_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !isfinite(value)) return nearest;
  std::uint32_t bits = bits_as<std::uint32_t>(nearest);
  if (fabs(static_cast<double>(nearest)) > fabs(value)) --bits;  // back towards zero
  return bits_as<float>(bits | 1);
}

struct HalfFormat {
  static std::uint16_t encode(float value) {
    const std::uint32_t bits = bits_as<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    std::uint32_t magnitude = bits & 0x7fffffffu;
    std::uint32_t result;
    if (magnitude > 0x7f800000u) {
      result = 0x7e00u | (magnitude >> 13 & 0x1ffu);
    } else if (magnitude >= 0x47800000u) {  // 2^16 and more
      result = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // below 2^-14: the unit of 0.5f is the smallest half
      result = bits_as<std::uint32_t>(bits_as<float>(magnitude) + 0.5f) - bits_as<std::uint32_t>(0.5f);
    } else {
      magnitude += 0xfffu + (magnitude >> 13 & 1u);
      result = (magnitude - 0x38000000u) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
  }
  static float decode(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu;
    if (exponent == 0) return copysignf(static_cast<float>(fraction) * 0x1p-24f, bits_as<float>(sign | 0x3f800000u));
    const std::uint32_t wide = exponent == 31 ? 0xffu : exponent + 112;
    return bits_as<float>(sign | wide << 23 | fraction << 13);
  }
};

struct BFloatFormat {
  static std::uint16_t encode(float value) {
    const std::uint32_t bits = bits_as<std::uint32_t>(value);
    if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  static float decode(std::uint16_t bfloat) { return bits_as<float>(std::uint32_t{bfloat} << 16); }
};

template <class Format>
struct Float16 {
  std::uint16_t data;

  Float16() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Float16(T value) {
    if constexpr (std::is_same_v<T, float>) data = Format::encode(value);
    else data = Format::encode(narrow_to_odd(static_cast<double>(value)));
  }
#ifdef __FLT16_MANT_DIG__
  Float16(_Float16 value) : Float16(static_cast<float>(value)) {}
  explicit operator _Float16() const { return static_cast<_Float16>(static_cast<float>(*this)); }
#endif
  operator float() const { return Format::decode(data); }
  static Float16 from_bits(std::uint16_t bits) {
    Float16 result;
    result.data = bits;
    return result;
  }
  float f() const { return *this; }

  friend Float16 operator+(Float16 a, Float16 b) { return a.f() + b.f(); }
  friend Float16 operator-(Float16 a, Float16 b) { return a.f() - b.f(); }
  friend Float16 operator*(Float16 a, Float16 b) { return a.f() * b.f(); }
  friend Float16 operator/(Float16 a, Float16 b) { return a.f() / b.f(); }
  friend Float16 operator-(Float16 a) { return from_bits(a.data ^ 0x8000u); }
  friend bool operator==(Float16 a, Float16 b) { return a.f() == b.f(); }
  friend bool operator!=(Float16 a, Float16 b) { return a.f() != b.f(); }
  friend bool operator<(Float16 a, Float16 b) { return a.f() < b.f(); }
  friend bool operator<=(Float16 a, Float16 b) { return a.f() <= b.f(); }
  friend bool operator>(Float16 a, Float16 b) { return a.f() > b.f(); }
  friend bool operator>=(Float16 a, Float16 b) { return a.f() >= b.f(); }
  Float16& operator+=(Float16 b) { return *this = *this + b; }
  Float16& operator-=(Float16 b) { return *this = *this - b; }
  Float16& operator*=(Float16 b) { return *this = *this * b; }
  Float16& operator/=(Float16 b) { return *this = *this / b; }
};

template <class Format>
struct alignas(4) Float16Pair {
  using Scalar = Float16<Format>;
  Scalar x, y;

  Float16Pair() = default;
  Float16Pair(Scalar x_, Scalar y_) : x(x_), y(y_) {}
  friend Float16Pair operator+(Float16Pair a, Float16Pair b) { return {a.x + b.x, a.y + b.y}; }
  friend Float16Pair operator-(Float16Pair a, Float16Pair b) { return {a.x - b.x, a.y - b.y}; }
  friend Float16Pair operator*(Float16Pair a, Float16Pair b) { return {a.x * b.x, a.y * b.y}; }
  friend Float16Pair operator/(Float16Pair a, Float16Pair b) { return {a.x / b.x, a.y / b.y}; }
  friend Float16Pair operator-(Float16Pair a) { return {-a.x, -a.y}; }
  friend bool operator==(Float16Pair a, Float16Pair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(Float16Pair a, Float16Pair b) { return !(a == b); }
  Float16Pair& operator+=(Float16Pair b) { return *this = *this + b; }
  Float16Pair& operator-=(Float16Pair b) { return *this = *this - b; }
  Float16Pair& operator*=(Float16Pair b) { return *this = *this * b; }
};

}  // namespace hip_on_cpu

#define HIP_ON_CPU_F16 template <class F> inline hip_on_cpu::Float16<F>
#define HIP_ON_CPU_PAIR template <class F> inline hip_on_cpu::Float16Pair<F>
#define HIP_ON_CPU_TEST template <class F> inline bool

HIP_ON_CPU_F16 __hadd(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a + b; }
HIP_ON_CPU_F16 __hsub(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a - b; }
HIP_ON_CPU_F16 __hmul(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a * b; }
HIP_ON_CPU_F16 __hdiv(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a / b; }
HIP_ON_CPU_F16 __hneg(hip_on_cpu::Float16<F> a) { return -a; }
HIP_ON_CPU_F16 __habs(hip_on_cpu::Float16<F> a) { return a.from_bits(a.data & 0x7fffu); }
HIP_ON_CPU_F16 __hfma(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b, hip_on_cpu::Float16<F> c) {
  return fma(static_cast<double>(a.f()), static_cast<double>(b.f()), static_cast<double>(c.f()));
}
HIP_ON_CPU_F16 __hmax(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return fmaxf(a, b); }
HIP_ON_CPU_F16 __hmin(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return fminf(a, b); }
HIP_ON_CPU_TEST __heq(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a == b; }
HIP_ON_CPU_TEST __hne(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a != b; }
HIP_ON_CPU_TEST __hlt(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a < b; }
HIP_ON_CPU_TEST __hle(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a <= b; }
HIP_ON_CPU_TEST __hgt(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a > b; }
HIP_ON_CPU_TEST __hge(hip_on_cpu::Float16<F> a, hip_on_cpu::Float16<F> b) { return a >= b; }
HIP_ON_CPU_TEST __hisnan(hip_on_cpu::Float16<F> a) { return a != a; }
HIP_ON_CPU_TEST __hisinf(hip_on_cpu::Float16<F> a) { return fabsf(a) == INFINITY; }

// A function of float, for one number and for a pair.
#define HIP_ON_CPU_UNARY(name, function)                                                        \
  HIP_ON_CPU_F16 h##name(hip_on_cpu::Float16<F> a) { return function(a.f()); }                  \
  HIP_ON_CPU_PAIR h2##name(hip_on_cpu::Float16Pair<F> a) { return {function(a.x.f()), function(a.y.f())}; }
HIP_ON_CPU_UNARY(exp, expf)
HIP_ON_CPU_UNARY(exp2, exp2f)
HIP_ON_CPU_UNARY(log, logf)
HIP_ON_CPU_UNARY(log2, log2f)
HIP_ON_CPU_UNARY(sqrt, sqrtf)
HIP_ON_CPU_UNARY(rsqrt, rsqrtf)
HIP_ON_CPU_UNARY(rcp, __frcp_rn)
HIP_ON_CPU_UNARY(sin, sinf)
HIP_ON_CPU_UNARY(cos, cosf)
HIP_ON_CPU_UNARY(floor, floorf)
HIP_ON_CPU_UNARY(ceil, ceilf)
HIP_ON_CPU_UNARY(rint, rintf)
HIP_ON_CPU_UNARY(trunc, truncf)
HIP_ON_CPU_UNARY(tanh, tanhf)
#undef HIP_ON_CPU_UNARY

HIP_ON_CPU_PAIR __hadd2(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b) { return a + b; }
HIP_ON_CPU_PAIR __hsub2(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b) { return a - b; }
HIP_ON_CPU_PAIR __hmul2(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b) { return a * b; }
HIP_ON_CPU_PAIR __h2div(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b) { return a / b; }
HIP_ON_CPU_PAIR __hneg2(hip_on_cpu::Float16Pair<F> a) { return -a; }
HIP_ON_CPU_PAIR __habs2(hip_on_cpu::Float16Pair<F> a) { return {__habs(a.x), __habs(a.y)}; }
HIP_ON_CPU_PAIR __hmax2(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
HIP_ON_CPU_PAIR __hmin2(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
HIP_ON_CPU_PAIR __hfma2(hip_on_cpu::Float16Pair<F> a, hip_on_cpu::Float16Pair<F> b, hip_on_cpu::Float16Pair<F> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}

#undef HIP_ON_CPU_F16
#undef HIP_ON_CPU_PAIR
#undef HIP_ON_CPU_TEST
