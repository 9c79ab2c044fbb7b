// Runs the threads of one block as fibers on one operating system thread.
//
// A thread runs until it must wait: in a wave operation, in a barrier, or at its end. Threads that never wait share
// one fiber, so that a kernel without barriers costs no switch. Which thread goes first, and which wave, comes from
// the order seed: a race that the natural order hides shows under some seeds.
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "cpu_fiber.h"
#include "cpu_shared.h"
#include "cpu_types.h"

#pragma GCC visibility push(hidden)

namespace hip_on_cpu {

constexpr unsigned kWaveSize = 64;
constexpr unsigned kMaxBlockThreads = 1024;
constexpr std::size_t kMaxSharedBytes = 64 * 1024;

// Where in the source a thread waits.
struct Site {
  const char* file = "";
  int line = 0;
  bool same_as(const Site& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
};

struct Wave;
struct Lane {
  uint3 index;  // threadIdx
  unsigned number;  // within the wave
  Wave* wave;
  Fiber* fiber;  // null before the thread starts and after it ends
  std::uint64_t sent;  // what it brings to the wave operation or the barrier
  Site site;
};

struct Wave {
  Lane* lanes = nullptr;
  unsigned count = 0;
  // One bit for each lane; a lane that is in none of these has ended.
  std::uint64_t ready = 0;
  std::uint64_t at_wave_op = 0;
  std::uint64_t at_barrier = 0;
  // The last wave operation: who took part, who sent something other than 0, and what each one sent.
  std::uint64_t active = 0;
  std::uint64_t votes = 0;
  std::uint64_t received[kWaveSize] = {};
};

// One kernel launch, shared by the workers.
struct Launch {
  char kernel[160] = {};
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t seed = 0;
  void (*invoke)(const void* body) = nullptr;
  const void* body = nullptr;
  std::atomic<std::uint64_t> next_block{0};
  std::atomic<bool> failed{false};
  std::atomic<int> error{0};

  // Reports the first fault of this launch only. `where` may be null.
  __attribute__((format(printf, 4, 5))) void fail(int code, const uint3* where, const char* format, ...) {
    if (failed.exchange(true)) return;
    error = code;
    char place[48] = "";
    if (where) std::snprintf(place, sizeof place, ", block (%u,%u,%u)", where->x, where->y, where->z);
    char text[480];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "hip-on-cpu: kernel %s%s: %s\n", kernel, place, text);
  }
};

template <class F>
void for_each_bit(std::uint64_t bits, F&& visit) {
  for (; bits; bits &= bits - 1) visit(static_cast<unsigned>(__builtin_ctzll(bits)));
}

class Worker {
 public:
  // What device code reads.
  Lane* lane = nullptr;  // the running thread; null outside a kernel
  uint3 block_index{0, 0, 0};
  const Launch* launch = nullptr;
  unsigned barrier_votes = 0;  // threads that brought something other than 0 to the last barrier

  Worker() : dynamic_(kMaxSharedBytes) {}

  void begin(Launch& launch_) {
    launch = current_ = &launch_;
    scheduler_.use_this_thread();
    static_ = find_static_shared();
    const dim3& size = launch_.block;
    threads_ = size.x * size.y * size.z;
    lanes_.resize(threads_);
    waves_.assign((threads_ + kWaveSize - 1) / kWaveSize, Wave{});
    for (unsigned i = 0; i < threads_; ++i) {
      Wave& wave = waves_[i / kWaveSize];
      if (i % kWaveSize == 0) wave.lanes = &lanes_[i];
      ++wave.count;
      lanes_[i] = Lane{{i % size.x, i / size.x % size.y, i / (size.x * size.y)}, i % kWaveSize, &wave, nullptr, 0, {}};
    }
  }

  // True when every thread came to its end.
  bool run_block(std::uint64_t block) {
    const dim3& grid = current_->grid;
    block_index = {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y};
    random_ = Random(current_->seed, block);
    fill_with_junk();
    ended_ = 0;
    atomic_budget_ = next_atomic_budget();
    for (Wave& wave : waves_) {
      wave.ready = wave.count == kWaveSize ? ~0ull : (1ull << wave.count) - 1;
      wave.at_wave_op = wave.at_barrier = 0;
    }
    do {
      run_until_all_wait();
    } while (ended_ < threads_ && release_barrier());
    lane = nullptr;
    if (ended_ == threads_) return true;
    abandon();
    return false;
  }

  // The running thread waits here until all lanes of its wave that can come have come.
  __attribute__((noinline)) Wave& wait_for_wave(std::uint64_t sent, Site site) {
    Wave& wave = *lane->wave;
    wave.at_wave_op |= 1ull << lane->number;
    leave(sent, site);
    return wave;
  }

  __attribute__((noinline)) void wait_for_block(std::uint64_t sent, Site site) {
    lane->wave->at_barrier |= 1ull << lane->number;
    leave(sent, site);
  }

  // Called by atomics and fences: now and then another thread gets its turn, so that a thread which spins on
  // another one of its block does not spin for ever.
  void may_pause() {
    if (--atomic_budget_ == 0) pause();
  }

  char* dynamic_shared() const { return dynamic_.end() - (current_->shared_bytes + 15) / 16 * 16; }

  bool past_dynamic_shared(const void* p) const { return dynamic_.guard_above_holds(p); }
  bool past_stack(const void* p) const { return lane && lane->fiber && lane->fiber->memory.guard_below_holds(p); }

 private:
  __attribute__((noinline)) void pause() {
    atomic_budget_ = next_atomic_budget();
    lane->wave->ready |= 1ull << lane->number;
    leave(0, {});
  }

  void leave(std::uint64_t sent, Site site) {
    lane->sent = sent;
    lane->site = site;
    Fiber& mine = *lane->fiber;  // read before next_context() changes `lane`
    switch_context(mine, next_context());
  }

  // Who runs next: a fiber of a thread that waited, a fresh fiber for a thread that has not started, or the scheduler.
  Context& next_context() {
    if (queue_next_ == queue_size_) return scheduler_;
    Lane* next = queue_[queue_next_];
    if (!next->fiber) return take_fiber() ? *starting_ : scheduler_;
    ++queue_next_;
    lane = next;
    return *next->fiber;
  }

  static void fiber_main(void* argument) {
#ifdef HIP_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    // No thread-local variable may be read here: a parked fiber can wake up on another operating system thread.
    Worker& worker = *static_cast<Worker*>(argument);
    Fiber* self = worker.starting_;
    for (;;) {
      while (worker.queue_next_ != worker.queue_size_ && !worker.queue_[worker.queue_next_]->fiber) {
        Lane* mine = worker.lane = worker.queue_[worker.queue_next_++];
        mine->fiber = self;
        worker.current_->invoke(worker.current_->body);
        mine->fiber = nullptr;
        ++worker.ended_;
      }
      worker.idle_.push_back(self);
      switch_context(*self, worker.next_context());
    }
  }

  // False without memory: then the queue is left unfinished, which the scheduler sees.
  bool take_fiber() {
    if (idle_.empty()) {
      try {
        idle_.reserve(fibers_.size() + 1);
        fibers_.push_back(std::make_unique<Fiber>());
      } catch (const std::bad_alloc&) {
        return false;
      }
      fibers_.back()->restart(fiber_main, this, static_cast<unsigned>(fibers_.size()));
      idle_.push_back(fibers_.back().get());
    }
    starting_ = idle_.back();
    idle_.pop_back();
    return true;
  }

  void run_until_all_wait() {
    Wave* runnable[kMaxBlockThreads / kWaveSize];
    unsigned count = 0;
    for (Wave& wave : waves_)
      if (wave.ready) runnable[count++] = &wave;
    for (unsigned first = 0; first < count;) {
      if (current_->seed) std::swap(runnable[first], runnable[first + random_.below(count - first)]);
      run_ready_lanes(*runnable[first]);
      if (!runnable[first]->ready) finish_wave_op(*runnable[first]);
      if (!runnable[first]->ready) ++first;
    }
  }

  void run_ready_lanes(Wave& wave) {
    queue_size_ = queue_next_ = 0;
    for_each_bit(wave.ready, [&](unsigned i) { queue_[queue_size_++] = &wave.lanes[i]; });
    wave.ready = 0;
    if (current_->seed)
      for (unsigned i = queue_size_; i > 1; --i) std::swap(queue_[i - 1], queue_[random_.below(i)]);
    Context& first = next_context();
    if (&first != &scheduler_) switch_context(scheduler_, first);
    if (queue_next_ != queue_size_) throw std::bad_alloc();
  }

  // Lanes that wait in different places (divergent code) take part in different operations, the first line first:
  // that is where a GPU has them meet again in nearly all code.
  void finish_wave_op(Wave& wave) {
    if (!wave.at_wave_op) return;
    const Lane* first = nullptr;
    for_each_bit(wave.at_wave_op, [&](unsigned i) {
      if (!first || wave.lanes[i].site.line < first->site.line) first = &wave.lanes[i];
    });
    wave.active = wave.votes = 0;
    for_each_bit(wave.at_wave_op, [&](unsigned i) {
      if (!wave.lanes[i].site.same_as(first->site)) return;
      wave.active |= 1ull << i;
      wave.votes |= static_cast<std::uint64_t>(wave.lanes[i].sent != 0) << i;
      wave.received[i] = wave.lanes[i].sent;
    });
    for_each_bit(~wave.active, [&](unsigned i) { wave.received[i] = random_.next(); });
    wave.at_wave_op &= ~wave.active;
    wave.ready = wave.active;
  }

  // Every thread that has not ended waits in a barrier. False when they do not all wait in the same one.
  bool release_barrier() {
    const Lane* first = nullptr;
    const Lane* other = nullptr;
    barrier_votes = 0;
    for (Wave& wave : waves_)
      for_each_bit(wave.at_barrier, [&](unsigned i) {
        const Lane& waiting = wave.lanes[i];
        if (!first) first = &waiting;
        if (!waiting.site.same_as(first->site)) other = &waiting;
        barrier_votes += waiting.sent != 0;
      });
    if (ended_) {
      current_->fail(kLaunchFailure, &block_index,
                     "barrier divergence: %u of %u threads wait in __syncthreads at %s:%d, the others have ended",
                     threads_ - ended_, threads_, first->site.file, first->site.line);
      return false;
    }
    if (other) {
      const uint3 &a = first->index, &b = other->index;
      current_->fail(kLaunchFailure, &block_index,
                     "barrier divergence: thread (%u,%u,%u) waits in __syncthreads at %s:%d, "
                     "thread (%u,%u,%u) at %s:%d",
                     a.x, a.y, a.z, first->site.file, first->site.line, b.x, b.y, b.z, other->site.file,
                     other->site.line);
      return false;
    }
    for (Wave& wave : waves_) {
      wave.ready = wave.at_barrier;
      wave.at_barrier = 0;
    }
    return true;
  }

  void abandon() {
    for (Lane& left : lanes_) {
      if (!left.fiber) continue;
      left.fiber->restart(fiber_main, this, static_cast<unsigned>(idle_.size()));
      idle_.push_back(left.fiber);
      left.fiber = nullptr;
    }
  }

  void fill_with_junk() {
    random_.fill(static_.begin, static_.end);
    random_.fill(dynamic_shared(), dynamic_.end());
  }

  unsigned next_atomic_budget() { return current_->seed ? 1 + random_.below(64) : 256; }

  static constexpr int kLaunchFailure = 719;  // hipErrorLaunchFailure

  Launch* current_ = nullptr;
  Context scheduler_;
  Random random_{0, 0};
  unsigned threads_ = 0;
  unsigned ended_ = 0;
  unsigned atomic_budget_ = 1;
  unsigned queue_size_ = 0;
  unsigned queue_next_ = 0;
  Lane* queue_[kWaveSize] = {};  // this turn of one wave
  Fiber* starting_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<Wave> waves_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  GuardedMemory dynamic_;  // the launch's dynamic shared memory lies at the end, against the guard page
  Range static_;
};

// The worker of this operating system thread. `not_zero` puts it among the initialised thread-local data, away from
// the shared variables, which junk is written over.
struct Self {
  Worker* worker = nullptr;
  int not_zero = 1;
};
inline thread_local Self self;

}  // namespace hip_on_cpu

#pragma GCC visibility pop
