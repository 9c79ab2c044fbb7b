// Launches: checks, operating system threads, and the report of a crash inside a kernel.
#pragma once

#include <signal.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "cpu_block.h"

enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorNotSupported = 801,
  hipErrorLaunchFailure = 719,
  hipErrorUnknown = 999,
};
struct ihipStream_t;
using hipStream_t = ihipStream_t*;

#pragma GCC visibility push(hidden)

namespace hip_on_cpu {

inline std::atomic<std::uint64_t> order_seed{0};
inline std::atomic<int> last_error{hipSuccess};

// Only what a signal handler may do: no allocation, no stdio.
class SignalLine {
 public:
  void text(const char* s) {
    while (*s && size_ < sizeof buffer_) buffer_[size_++] = *s++;
  }
  void number(std::uint64_t value, unsigned base = 10) {
    char digits[24];
    int i = sizeof digits - 1;
    digits[i] = 0;
    do digits[--i] = "0123456789abcdef"[value % base];
    while (value /= base);
    text(digits + i);
  }
  void triple(const uint3& v) {
    const char* separator = "(";
    for (unsigned part : v.data) {
      text(separator);
      number(part);
      separator = ",";
    }
    text(")");
  }
  void print() {
    text("\n");
    [[maybe_unused]] const auto written = write(STDERR_FILENO, buffer_, size_);
  }

 private:
  char buffer_[512];
  std::size_t size_ = 0;
};

// While a launch runs, a bad access inside a kernel prints one line; then whatever was there before takes the signal.
class FaultReports {
 public:
  FaultReports() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (users++) return;
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
  }
  ~FaultReports() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--users) return;
    sigaction(SIGSEGV, &before[0], nullptr);
    sigaction(SIGBUS, &before[1], nullptr);
  }

 private:
  static void on_fault(int signal, siginfo_t* info, void*) {
    const Worker* worker = self.worker;
    if (worker && worker->lane) {
      const bool overflow = worker->past_stack(info->si_addr);
      SignalLine line;
      line.text(overflow ? "hip-on-cpu: stack overflow at " : "hip-on-cpu: invalid memory access at ");
      if (info->si_code == SI_KERNEL) {
        line.text("a non-canonical address");  // the processor does not say which
      } else {
        line.text("0x");
        line.number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16);
      }
      line.text(" in kernel ");
      line.text(worker->launch->kernel);
      line.text(", block ");
      line.triple(worker->block_index);
      line.text(", thread ");
      line.triple(worker->lane->index);
      if (worker->past_dynamic_shared(info->si_addr)) line.text(", past the end of dynamic shared memory");
      line.print();
    }
    sigaction(signal, &before[signal == SIGBUS], nullptr);  // the instruction faults again on return
    if (info->si_code <= 0) raise(signal);  // sent by a process, so nothing would fault again
  }

  static inline std::mutex mutex;
  static inline int users = 0;
  static inline struct sigaction before[2];
};

// Makes the calling thread run kernels: its worker, a stack for the signal handler, and its thread-local variables
// back as they were afterwards (junk is written over them when they have no initial value).
class Attached {
 public:
  Attached(Worker& worker, Launch& launch) {
    self.worker = nullptr;  // the first touch allocates the thread-local variables of this library
    variables_ = find_static_shared();
    saved_.assign(variables_.begin, variables_.end);
    stack_t stack = {};
    stack.ss_sp = signal_stack_;
    stack.ss_size = sizeof signal_stack_;
    sigaltstack(&stack, &signal_stack_before_);
    worker.begin(launch);
    self.worker = &worker;
  }
  ~Attached() {
    self.worker = nullptr;
    sigaltstack(&signal_stack_before_, nullptr);
    std::copy(saved_.begin(), saved_.end(), variables_.begin);
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  Range variables_;
  std::vector<char> saved_;
  stack_t signal_stack_before_ = {};
  alignas(64) char signal_stack_[64 * 1024];
};

// Workers keep their stacks between launches.
class WorkerPool {
 public:
  std::unique_ptr<Worker> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) return std::make_unique<Worker>();
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }
  void give_back(std::unique_ptr<Worker> worker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(worker));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};
inline WorkerPool worker_pool;

inline unsigned worker_limit() {
#ifdef HIP_ON_CPU_ASAN
  return 1;
#else
  return std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
#endif
}

// i -> (i * step + start) mod n visits every block once when step and n have no common factor.
class BlockOrder {
 public:
  BlockOrder(std::uint64_t blocks, std::uint64_t seed) : blocks_(blocks) {
    if (seed == 0) return;
    Random random(seed, ~0ull);
    start_ = random.next() % blocks;
    do step_ = (random.next() >> 33) | 1;
    while (greatest_common_divisor(step_, blocks) != 1);
  }
  std::uint64_t at(std::uint64_t i) const { return (i * (step_ % blocks_) + start_) % blocks_; }

 private:
  static std::uint64_t greatest_common_divisor(std::uint64_t a, std::uint64_t b) {
    while (b) a = std::exchange(b, a % b);
    return a;
  }
  std::uint64_t blocks_;
  std::uint64_t start_ = 0;
  std::uint64_t step_ = 1;
};

inline bool is_legal(Launch& launch) {
  const dim3 &grid = launch.grid, &block = launch.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const char* fault = nullptr;
  if (self.worker) {
    fault = "a launch inside a kernel";
  } else if (threads == 0 || block.x > kMaxBlockThreads || block.y > kMaxBlockThreads ||
             block.z > kMaxBlockThreads || threads > kMaxBlockThreads) {
    fault = "a block has 1 to 1024 threads";
  } else if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    fault = "a grid has 1 to 2147483647, 65535 and 65535 blocks";
  } else if (launch.blocks > 0xffffffffu) {
    fault = "a grid has fewer than 2^32 blocks";
  } else if (launch.shared_bytes > kMaxSharedBytes) {
    fault = "a block has at most 65536 bytes of shared memory";
  }
  if (!fault) return true;
  launch.fail(hipErrorInvalidConfiguration, nullptr,
              "invalid configuration: %s; asked: grid (%u,%u,%u), block (%u,%u,%u), %zu bytes", fault, grid.x, grid.y,
              grid.z, block.x, block.y, block.z, launch.shared_bytes);
  return false;
}

inline void work(Launch& launch, const BlockOrder& order) {
  try {
    std::unique_ptr<Worker> worker = worker_pool.take();
    {
      const auto attached = std::make_unique<Attached>(*worker, launch);
      while (!launch.failed) {
        const std::uint64_t i = launch.next_block++;
        if (i >= launch.blocks || !worker->run_block(order.at(i))) break;
      }
    }
    worker_pool.give_back(std::move(worker));
  } catch (const std::bad_alloc&) {
    launch.fail(hipErrorOutOfMemory, nullptr, "no memory for the stacks of the threads");
  }
}

__attribute__((noinline)) inline void run(Launch& launch) {
  launch.blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  launch.seed = order_seed;
  if (is_legal(launch)) {
    const FaultReports reports;
    const BlockOrder order(launch.blocks, launch.seed);
    std::vector<std::thread> helpers;
    // To start an operating system thread takes as long as to run a few thousand short GPU threads.
    const std::uint64_t threads = launch.blocks * launch.block.x * launch.block.y * launch.block.z;
    const std::uint64_t wanted = std::min({std::uint64_t{worker_limit()}, launch.blocks, 1 + threads / 4096});
    try {
      while (helpers.size() + 1 < wanted) helpers.emplace_back(work, std::ref(launch), std::cref(order));
    } catch (const std::system_error&) {
      // A limit on threads: fewer of them do the work.
    }
    work(launch, order);
    for (std::thread& helper : helpers) helper.join();
  }
  if (launch.error != hipSuccess) last_error = launch.error.load();
}

template <class... P>
class Launcher {
 public:
  Launcher(const char* name, void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, hipStream_t)
      : kernel_(kernel) {
    const bool in_parentheses = *name == '(';  // (k<float, 4>), as the rewriter writes it
    const std::size_t length = std::strlen(name) - (in_parentheses ? 2 : 0);
    std::memcpy(launch_.kernel, name + in_parentheses, std::min(length, sizeof launch_.kernel - 1));
    launch_.grid = grid;
    launch_.block = block;
    launch_.shared_bytes = shared_bytes;
  }
  void operator()(P... parameters) {
    auto body = [&] { kernel_(parameters...); };
    launch_.body = &body;
    launch_.invoke = [](const void* b) { (*static_cast<const decltype(body)*>(b))(); };
    run(launch_);
  }

 private:
  void (*kernel_)(P...);
  Launch launch_;
};

}  // namespace hip_on_cpu

#pragma GCC visibility pop

// Chooses the order of blocks, of threads and of waves between barriers; 0 is the natural order.
extern "C" __attribute__((used, visibility("default"))) inline void hip_on_cpu_set_order_seed(unsigned long long seed) {
  hip_on_cpu::order_seed = seed;
}

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  hip_on_cpu::Launcher(#kernel, kernel, grid, block, shared_bytes, stream)(__VA_ARGS__)
