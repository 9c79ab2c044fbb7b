// What several hostile candidates need. A line `#include "tools.h"` in a fixture is replaced by this text, because a
// build sees one file only; `#include "baseline.h"` is replaced by the task's baseline, whose entry becomes
// honest_softmax.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <thread>

[[maybe_unused]] constexpr int kChannel = 3;  // the worker's socket to the judge
constexpr int kRowThreads = 256;

// Runs a text in the interpreter of the worker; false where it fails.
[[maybe_unused]] static bool run_python(const char* text) {
    const auto ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
    const auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
    const auto run = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleString"));
    if (!ensure || !release || !run) {
        return false;
    }
    const int state = ensure();
    const int code = run(text);
    release(state);
    return code == 0;
}

[[maybe_unused]] static void sleep_ms(long milliseconds) {
    timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

// Overwrites the first bytes of a function of this process.
[[maybe_unused]] static bool overwrite(void* function, const unsigned char* code, size_t count) {
    if (!function) {
        return false;
    }
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t start = reinterpret_cast<uintptr_t>(function) & ~(page - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(function) + count + page - 1) & ~(page - 1);
    if (mprotect(reinterpret_cast<void*>(start), end - start, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return false;
    }
    memcpy(function, code, count);
    return true;
}

// One row by one block, as in the baseline.
__device__ inline void softmax_row(float* y_row, const float* x_row, int cols) {
    __shared__ float scratch[kRowThreads];
    float value = -3.4e38f;
    for (int col = threadIdx.x; col < cols; col += kRowThreads) {
        value = fmaxf(value, x_row[col]);
    }
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = kRowThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
        }
        __syncthreads();
    }
    const float largest = scratch[0];
    __syncthreads();
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kRowThreads) {
        sum += expf(x_row[col] - largest);
    }
    scratch[threadIdx.x] = sum;
    __syncthreads();
    for (int half = kRowThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            scratch[threadIdx.x] += scratch[threadIdx.x + half];
        }
        __syncthreads();
    }
    sum = scratch[0];
    for (int col = threadIdx.x; col < cols; col += kRowThreads) {
        y_row[col] = expf(x_row[col] - largest) / sum;
    }
}
