// The junk that shared memory holds when a block starts, and where the static part of it lies.
#pragma once

#include <link.h>

#include <cstdint>
#include <cstring>

#include "cpu_types.h"

#pragma GCC visibility push(hidden)

namespace hip_on_cpu {

struct Range {
  char* begin = nullptr;
  char* end = nullptr;
};

// xorshift64*, started from a seed and a number.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t number) : state_(seed * 0x9e3779b97f4a7c15ull + number + 1) {
    state_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9ull;
    state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebull;
    state_ |= 1;
  }
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>((next() >> 32) * limit >> 32); }

  void fill(char* begin, char* end) {
    for (; end - begin >= 8; begin += 8) {
      const std::uint64_t word = next();
      std::memcpy(begin, &word, 8);
    }
    for (; begin != end; ++begin) *begin = static_cast<char>(next());
  }

 private:
  std::uint64_t state_;
};

// All `__shared__` variables of this library, for the calling thread: they are thread-local and have no initial
// value, so they are what lies behind the initialised part of the library's thread-local block. (In a program that is
// linked statically the C library's own variables lie there too: that is not supported.)
inline Range find_static_shared() {
  Range found;
#ifndef HIP_ON_CPU_ASAN
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* result) {
        const auto here = reinterpret_cast<std::uintptr_t>(&find_static_shared);
        const ElfW(Phdr)* tls = nullptr;
        bool ours = false;
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = library->dlpi_phdr[i];
          if (part.p_type == PT_TLS) tls = &part;
          if (part.p_type == PT_LOAD && here - library->dlpi_addr - part.p_vaddr < part.p_memsz) ours = true;
        }
        if (!ours) return 0;
        if (tls && library->dlpi_tls_data) {
          char* block = static_cast<char*>(library->dlpi_tls_data);
          *static_cast<Range*>(result) = {block + tls->p_filesz, block + tls->p_memsz};
        }
        return 1;
      },
      &found);
#endif
  return found;
}

}  // namespace hip_on_cpu

#pragma GCC visibility pop
