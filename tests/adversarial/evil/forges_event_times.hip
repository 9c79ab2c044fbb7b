// Tries: at load, to make every clock of its own process run ten times slower (clock_gettime, gettimeofday) and every
// event time tiny. The kernel is the baseline. CUDA.
// Gains nothing: no time of a worker is used, so the verdict is no_difference_shown.
#include "baseline.h"
#include "tools.h"

#include <sys/syscall.h>
#include <sys/time.h>

static int slow_clock(clockid_t clock, timespec* time) {
    const int code = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
    const int64_t nanoseconds = (time->tv_sec * 1000000000ll + time->tv_nsec) / 10;
    time->tv_sec = nanoseconds / 1000000000ll;
    time->tv_nsec = nanoseconds % 1000000000ll;
    return code;
}

static int slow_day(timeval* time, void*) {
    timespec now;
    slow_clock(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

static cudaError_t tiny_elapsed(float* milliseconds, cudaEvent_t, cudaEvent_t) {
    *milliseconds = 0.001f;
    return cudaSuccess;
}

// mov rax, target; jmp rax
static bool redirect(const char* name, void* target) {
    unsigned char code[12] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0};
    memcpy(code + 2, &target, sizeof target);
    return overwrite(dlsym(RTLD_DEFAULT, name), code, sizeof code);
}

static const bool forged = [] {
    const bool event = redirect("cudaEventElapsedTime", reinterpret_cast<void*>(&tiny_elapsed)) ||
                       overwrite(reinterpret_cast<void*>(&cudaEventElapsedTime),
                                 reinterpret_cast<const unsigned char*>("\x31\xC0\xC3"), 3);
    const bool clock = redirect("clock_gettime", reinterpret_cast<void*>(&slow_clock));
    const bool day = redirect("gettimeofday", reinterpret_cast<void*>(&slow_day));
    printf("forged: events %d, clock %d, day %d\n", event, clock, day);
    fflush(stdout);
    // gettimeofday may lie in the kernel's own page, which cannot be written.
    return event && clock;
}();

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    // Without these two patches the fixture would prove nothing.
    return forged ? honest_softmax(y, x, rows, cols, stream) : 1;
}
