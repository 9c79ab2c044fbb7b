// What device code calls: indices, barriers, wave operations, atomics.
#pragma once

#include <chrono>
#include <cstring>
#include <type_traits>

#include "cpu_block.h"

#define threadIdx (hip_on_cpu::self.worker->lane->index)
#define blockIdx (hip_on_cpu::self.worker->block_index)
#define blockDim (hip_on_cpu::self.worker->launch->block)
#define gridDim (hip_on_cpu::self.worker->launch->grid)
constexpr int warpSize = 64;

// Dynamic shared memory. The rewriter turns `extern __shared__ T name[];` inside a function into the first form; at
// namespace scope it uses the class.
#define HIP_DYNAMIC_SHARED(type, name) type* name = hip_on_cpu::DynamicShared<type>();
#define HIP_ON_CPU_DYNAMIC_SHARED hip_on_cpu::AnyDynamicShared()

#pragma GCC visibility push(hidden)

namespace hip_on_cpu {

template <class T>
struct DynamicShared {
  operator T*() const { return reinterpret_cast<T*>(self.worker->dynamic_shared()); }
};
struct AnyDynamicShared {
  template <class T>
  operator T*() const {
    return DynamicShared<T>();
  }
};

// A default argument is evaluated where the call stands, so each operation knows its line.
#define HIP_ON_CPU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class T>
T exchange(T value, int source_lane, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a wave moves values of up to 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const Wave& wave = self.worker->wait_for_wave(bits, site);
  std::memcpy(&value, &wave.received[source_lane & 63], sizeof value);
  return value;
}

inline int lane_number() { return static_cast<int>(self.worker->lane->number); }

inline void may_pause() {
  if (Worker* worker = self.worker) worker->may_pause();
}

template <class T>
constexpr bool kAtomicInteger = std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, long long> ||
                                std::is_same_v<T, unsigned long> || std::is_same_v<T, unsigned long long>;

// One atomic read-modify-write of any type: change(old) is what to store. Returns the old value.
template <class T, class F>
T modify(T* address, F change) {
  static_assert(kAtomicInteger<T> || std::is_same_v<T, float> || std::is_same_v<T, double>,
                "HIP has no such atomic for this type");
  may_pause();
  T before, after;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  do after = change(before);
  while (!__atomic_compare_exchange(address, &before, &after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return before;
}

template <class T>
using Same = std::common_type_t<T>;  // the second argument converts to the type of the first

}  // namespace hip_on_cpu

inline void __syncthreads(HIP_ON_CPU_SITE) { hip_on_cpu::self.worker->wait_for_block(0, {file, line}); }
inline int __syncthreads_count(int predicate, HIP_ON_CPU_SITE) {
  hip_on_cpu::self.worker->wait_for_block(predicate != 0, {file, line});
  return static_cast<int>(hip_on_cpu::self.worker->barrier_votes);
}
inline int __syncthreads_or(int predicate, HIP_ON_CPU_SITE) { return __syncthreads_count(predicate, file, line) != 0; }
inline int __syncthreads_and(int predicate, HIP_ON_CPU_SITE) {
  return __syncthreads_count(!predicate, file, line) == 0;
}

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  hip_on_cpu::may_pause();
}
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }

template <class T>
T __shfl(T value, int source, int width = warpSize, HIP_ON_CPU_SITE) {
  const int lane = hip_on_cpu::lane_number();
  return hip_on_cpu::exchange(value, (source & (width - 1)) + (lane & ~(width - 1)), {file, line});
}
template <class T>
T __shfl_up(T value, unsigned delta, int width = warpSize, HIP_ON_CPU_SITE) {
  const int lane = hip_on_cpu::lane_number(), source = lane - static_cast<int>(delta);
  return hip_on_cpu::exchange(value, source < (lane & ~(width - 1)) ? lane : source, {file, line});
}
template <class T>
T __shfl_down(T value, unsigned delta, int width = warpSize, HIP_ON_CPU_SITE) {
  const int lane = hip_on_cpu::lane_number(), source = lane + static_cast<int>(delta);
  return hip_on_cpu::exchange(value, source >= (lane & ~(width - 1)) + width ? lane : source, {file, line});
}
template <class T>
T __shfl_xor(T value, int mask, int width = warpSize, HIP_ON_CPU_SITE) {
  const int lane = hip_on_cpu::lane_number(), source = lane ^ mask;
  return hip_on_cpu::exchange(value, source >= (lane & ~(width - 1)) + width ? lane : source, {file, line});
}

inline unsigned long long __ballot(int predicate, HIP_ON_CPU_SITE) {
  return hip_on_cpu::self.worker->wait_for_wave(predicate != 0, {file, line}).votes;
}
inline int __any(int predicate, HIP_ON_CPU_SITE) { return __ballot(predicate, file, line) != 0; }
inline int __all(int predicate, HIP_ON_CPU_SITE) { return __ballot(!predicate, file, line) == 0; }
inline unsigned long long __activemask(HIP_ON_CPU_SITE) { return __ballot(1, file, line); }
inline void __syncwarp(unsigned long long = ~0ull, HIP_ON_CPU_SITE) { __ballot(1, file, line); }
inline unsigned __lane_id() { return hip_on_cpu::self.worker->lane->number; }

// The forms with a mask: who takes part is what the control flow says, as on the device.
#define __shfl_sync(mask, ...) __shfl(__VA_ARGS__)
#define __shfl_up_sync(mask, ...) __shfl_up(__VA_ARGS__)
#define __shfl_down_sync(mask, ...) __shfl_down(__VA_ARGS__)
#define __shfl_xor_sync(mask, ...) __shfl_xor(__VA_ARGS__)
#define __ballot_sync(mask, predicate) __ballot(predicate)
#define __any_sync(mask, predicate) __any(predicate)
#define __all_sync(mask, predicate) __all(predicate)

#define HIP_ON_CPU_ATOMIC(name, after)                                                          \
  template <class T>                                                                            \
  T name(T* address, hip_on_cpu::Same<T> value) {                                               \
    return hip_on_cpu::modify(address, [value](T before) -> T { return after; });               \
  }
#define HIP_ON_CPU_INTEGER_ATOMIC(name, after)                                                  \
  template <class T>                                                                            \
  T name(T* address, hip_on_cpu::Same<T> value) {                                               \
    static_assert(hip_on_cpu::kAtomicInteger<T>, #name " takes integers");                      \
    return hip_on_cpu::modify(address, [value](T before) -> T { return after; });               \
  }
HIP_ON_CPU_ATOMIC(atomicAdd, before + value)
HIP_ON_CPU_ATOMIC(unsafeAtomicAdd, before + value)
HIP_ON_CPU_ATOMIC(atomicSub, before - value)
HIP_ON_CPU_ATOMIC(atomicExch, (static_cast<void>(before), value))
HIP_ON_CPU_ATOMIC(atomicMin, value < before ? value : before)
HIP_ON_CPU_ATOMIC(atomicMax, before < value ? value : before)
HIP_ON_CPU_INTEGER_ATOMIC(atomicAnd, before & value)
HIP_ON_CPU_INTEGER_ATOMIC(atomicOr, before | value)
HIP_ON_CPU_INTEGER_ATOMIC(atomicXor, before ^ value)
HIP_ON_CPU_INTEGER_ATOMIC(atomicInc, before >= value ? 0 : before + 1)
HIP_ON_CPU_INTEGER_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)
#undef HIP_ON_CPU_ATOMIC
#undef HIP_ON_CPU_INTEGER_ATOMIC

template <class T>
T atomicCAS(T* address, hip_on_cpu::Same<T> expected, hip_on_cpu::Same<T> value) {
  static_assert(hip_on_cpu::kAtomicInteger<T>, "atomicCAS takes integers");
  hip_on_cpu::may_pause();
  __atomic_compare_exchange(address, &expected, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}

inline long long wall_clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
inline long long clock64() { return wall_clock64(); }

#pragma GCC visibility pop
