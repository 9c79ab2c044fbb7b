// Vector types, dim3, and the words that HIP adds to C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define AKARENA_TARGET_CPU 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_AMD__ 1  // The flavour of the API. No __gfx*__ macro is set: code for one chip stays off.
#define __AMDGCN_WAVEFRONT_SIZE 64

// Hidden, because g++ makes the statics of templates unique in the whole process: two libraries that hold a kernel
// of the same name would share its shared memory. Where the attribute means nothing the warning helps nobody.
#pragma GCC diagnostic ignored "-Wattributes"
#define __global__ __attribute__((visibility("hidden")))
#define __device__ __attribute__((visibility("hidden")))
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// A block runs on one operating system thread. AddressSanitizer watches plain statics only, so there is one thread
// then and shared variables are plain.
#if defined(__SANITIZE_ADDRESS__)
#define HIP_ON_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HIP_ON_CPU_ASAN 1
#endif
#endif
#ifdef HIP_ON_CPU_ASAN
#define __shared__ static
#else
#define __shared__ thread_local
#endif

#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
using _Float16 = __fp16;  // the same format; g++ did not know the name in C++ yet
#endif

namespace hip_on_cpu {

template <class T, int N>
struct Components;
template <class T>
struct alignas(sizeof(T)) Components<T, 1> {
  union { T data[1]; struct { T x; }; };
};
template <class T>
struct alignas(2 * sizeof(T)) Components<T, 2> {
  union { T data[2]; struct { T x, y; }; };
};
template <class T>
struct Components<T, 3> {
  union { T data[3]; struct { T x, y, z; }; };
};
template <class T>
struct alignas(4 * sizeof(T)) Components<T, 4> {
  union { T data[4]; struct { T x, y, z, w; }; };
};

template <class T, int N>
struct Vector : Components<T, N> {
  Vector() = default;
  template <class... A, std::enable_if_t<(N > 1) && sizeof...(A) == N, int> = 0>
  constexpr Vector(A... values) : Components<T, N>{{{static_cast<T>(values)...}}} {}
  template <class A, std::enable_if_t<std::is_arithmetic_v<A>, int> = 0>
  explicit constexpr Vector(A value) : Components<T, N>{} {
    for (T& component : this->data) component = static_cast<T>(value);
  }
  constexpr T& operator[](int i) { return this->data[i]; }
  constexpr const T& operator[](int i) const { return this->data[i]; }
};

template <class S>
using Arithmetic = std::enable_if_t<std::is_arithmetic_v<S>, int>;

// Templates on purpose: a kernel's own operator for float4 is the better match.
#define HIP_ON_CPU_OPERATOR(op)                                                             \
  template <class T, int N>                                                                 \
  Vector<T, N>& operator op##=(Vector<T, N>& a, const Vector<T, N>& b) {                    \
    for (int i = 0; i < N; ++i) a.data[i] = static_cast<T>(a.data[i] op b.data[i]);         \
    return a;                                                                               \
  }                                                                                         \
  template <class T, int N, class S, Arithmetic<S> = 0>                                     \
  Vector<T, N>& operator op##=(Vector<T, N>& a, S b) {                                      \
    return a op## = Vector<T, N>(b);                                                        \
  }                                                                                         \
  template <class T, int N>                                                                 \
  Vector<T, N> operator op(Vector<T, N> a, const Vector<T, N>& b) {                         \
    return a op## = b;                                                                      \
  }                                                                                         \
  template <class T, int N, class S, Arithmetic<S> = 0>                                     \
  Vector<T, N> operator op(Vector<T, N> a, S b) {                                           \
    return a op## = b;                                                                      \
  }                                                                                         \
  template <class T, int N, class S, Arithmetic<S> = 0>                                     \
  Vector<T, N> operator op(S a, const Vector<T, N>& b) {                                    \
    return Vector<T, N>(a) op b;                                                            \
  }
HIP_ON_CPU_OPERATOR(+)
HIP_ON_CPU_OPERATOR(-)
HIP_ON_CPU_OPERATOR(*)
HIP_ON_CPU_OPERATOR(/)
#undef HIP_ON_CPU_OPERATOR

template <class T, int N>
Vector<T, N> operator-(const Vector<T, N>& a) {
  return Vector<T, N>(0) - a;
}
template <class T, int N>
bool operator==(const Vector<T, N>& a, const Vector<T, N>& b) {
  for (int i = 0; i < N; ++i)
    if (a.data[i] != b.data[i]) return false;
  return true;
}
template <class T, int N>
bool operator!=(const Vector<T, N>& a, const Vector<T, N>& b) {
  return !(a == b);
}

}  // namespace hip_on_cpu

#define HIP_ON_CPU_VECTORS(name, T)                                             \
  using name##1 = hip_on_cpu::Vector<T, 1>;                                     \
  using name##2 = hip_on_cpu::Vector<T, 2>;                                     \
  using name##3 = hip_on_cpu::Vector<T, 3>;                                     \
  using name##4 = hip_on_cpu::Vector<T, 4>;                                     \
  inline name##1 make_##name##1(T x) { return name##1(x); }                     \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                    \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }            \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
HIP_ON_CPU_VECTORS(char, signed char)
HIP_ON_CPU_VECTORS(uchar, unsigned char)
HIP_ON_CPU_VECTORS(short, short)
HIP_ON_CPU_VECTORS(ushort, unsigned short)
HIP_ON_CPU_VECTORS(int, int)
HIP_ON_CPU_VECTORS(uint, unsigned int)
HIP_ON_CPU_VECTORS(long, long)
HIP_ON_CPU_VECTORS(ulong, unsigned long)
HIP_ON_CPU_VECTORS(longlong, long long)
HIP_ON_CPU_VECTORS(ulonglong, unsigned long long)
HIP_ON_CPU_VECTORS(float, float)
HIP_ON_CPU_VECTORS(double, double)
#undef HIP_ON_CPU_VECTORS

struct dim3 {
  std::uint32_t x, y, z;
  constexpr dim3(std::uint32_t x_ = 1, std::uint32_t y_ = 1, std::uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
