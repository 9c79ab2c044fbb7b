// Tries: to give an output that computes itself when it is looked at: its pages cannot be read, and the handler of the
// fault fills them. Refused by: the judge looks through a mapping of its own, where nothing faults (output_not_written,
// or wrong or missing values where a page also holds something else).
#include <hip/hip_runtime.h>

#include <math.h>

#include "tools.h"

static float* lazy_y = nullptr;
static const float* lazy_x = nullptr;
static int lazy_rows = 0, lazy_cols = 0;
static char* first_page = nullptr;
static size_t lazy_bytes = 0;

static void fill(int, siginfo_t*, void*) {
    if (!lazy_y || mprotect(first_page, lazy_bytes, PROT_READ | PROT_WRITE) != 0) {
        _exit(1);
    }
    for (long long row = 0; row < lazy_rows; ++row) {
        const float* from = lazy_x + row * lazy_cols;
        float sum = 0.0f;
        for (int col = 0; col < lazy_cols; ++col) {
            sum += expf(from[col]);
        }
        for (int col = 0; col < lazy_cols; ++col) {
            lazy_y[row * lazy_cols + col] = expf(from[col]) / sum;
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    struct sigaction action = {};
    action.sa_sigaction = fill;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t start = reinterpret_cast<uintptr_t>(y) & ~(page - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(y + static_cast<long long>(rows) * cols) + page - 1) & ~(page - 1);
    lazy_y = y;
    lazy_x = x;
    lazy_rows = rows;
    lazy_cols = cols;
    first_page = reinterpret_cast<char*>(start);
    lazy_bytes = end - start;
    return mprotect(first_page, lazy_bytes, PROT_NONE) != 0;
}
