// Stacks of our own and the switch between them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

#ifdef HIP_ON_CPU_ASAN
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#pragma GCC visibility push(hidden)

extern "C" {
// Saves the callee-saved registers on this stack, stores its pointer at *save and goes on from `load`.
void hip_on_cpu_switch(void** save, void* load);
// First frame of a fiber: calls the function with the argument that Fiber::restart put in two saved registers.
void hip_on_cpu_enter();
}

#if defined(__x86_64__)
// The jump (not a return) keeps the processor's return predictor out of it.
__asm__(R"(
  .text
  .weak hip_on_cpu_switch
  .hidden hip_on_cpu_switch
  .type hip_on_cpu_switch, @function
hip_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
  .size hip_on_cpu_switch, .-hip_on_cpu_switch
  .weak hip_on_cpu_enter
  .hidden hip_on_cpu_enter
  .type hip_on_cpu_enter, @function
hip_on_cpu_enter:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  callq *%r13
  ud2
  .cfi_endproc
  .size hip_on_cpu_enter, .-hip_on_cpu_enter
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .weak hip_on_cpu_switch
  .hidden hip_on_cpu_switch
  .type hip_on_cpu_switch, %function
hip_on_cpu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  br x30
  .size hip_on_cpu_switch, .-hip_on_cpu_switch
  .weak hip_on_cpu_enter
  .hidden hip_on_cpu_enter
  .type hip_on_cpu_enter, %function
hip_on_cpu_enter:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x19
  blr x20
  brk #0
  .cfi_endproc
  .size hip_on_cpu_enter, .-hip_on_cpu_enter
)");
#else
#error "HIP on a CPU: x86-64 and aarch64 only"
#endif

namespace hip_on_cpu {

#ifdef HIP_ON_CPU_ASAN
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

// A place to switch from and to: the stack of an operating system thread, or a fiber.
struct Context {
  void* stack_pointer = nullptr;
  void* stack = nullptr;  // lowest address and size: only AddressSanitizer needs them
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;

  void use_this_thread() {
#ifdef HIP_ON_CPU_ASAN
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &stack_bytes);
    pthread_attr_destroy(&attributes);
#endif
  }
};

inline void switch_context(Context& from, Context& to) {
#ifdef HIP_ON_CPU_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
  hip_on_cpu_switch(&from.stack_pointer, to.stack_pointer);
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#else
  hip_on_cpu_switch(&from.stack_pointer, to.stack_pointer);
#endif
}

// Readable memory with a page before and after it that nobody may touch.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    bytes_ = (bytes + page_ - 1) / page_ * page_;
    void* map = mmap(nullptr, bytes_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<char*>(map) + page_;
    if (mprotect(begin_, bytes_, PROT_READ | PROT_WRITE) != 0) {
      munmap(map, bytes_ + 2 * page_);
      throw std::bad_alloc();
    }
  }
  ~GuardedMemory() { munmap(begin_ - page_, bytes_ + 2 * page_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* begin() const { return begin_; }
  char* end() const { return begin_ + bytes_; }
  bool guard_below_holds(const void* p) const { return p >= begin_ - page_ && p < begin_; }
  bool guard_above_holds(const void* p) const { return p >= end() && p < end() + page_; }

 private:
  std::size_t page_;
  std::size_t bytes_;
  char* begin_;
};

struct Fiber : Context {
  GuardedMemory memory{kStackBytes};

  // Forgets whatever ran here: the next switch to this fiber calls entry(argument), which must not return.
  // `colour` moves the first frame, or all fibers would fight for the same sets of the first cache.
  void restart(void (*entry)(void*), void* argument, unsigned colour) {
    stack = memory.begin();
    stack_bytes = static_cast<std::size_t>(memory.end() - memory.begin());
#ifdef HIP_ON_CPU_ASAN
    __asan_unpoison_memory_region(stack, stack_bytes);
#endif
    void** top = reinterpret_cast<void**>(memory.end() - 64 - colour % 16 * 256);
#if defined(__x86_64__)
    void** frame = top - 7;  // r15 r14 r13 r12 rbx rbp, then where to jump
    frame[0] = frame[1] = frame[4] = frame[5] = nullptr;
    frame[2] = reinterpret_cast<void*>(entry);
    frame[3] = argument;
    frame[6] = reinterpret_cast<void*>(&hip_on_cpu_enter);
#else
    void** frame = top - 20;  // x19 to x30, then d8 to d15
    for (int i = 0; i < 20; ++i) frame[i] = nullptr;
    frame[0] = argument;
    frame[1] = reinterpret_cast<void*>(entry);
    frame[11] = reinterpret_cast<void*>(&hip_on_cpu_enter);
#endif
    stack_pointer = frame;
    fake_stack = nullptr;
  }
};

}  // namespace hip_on_cpu

#pragma GCC visibility pop
