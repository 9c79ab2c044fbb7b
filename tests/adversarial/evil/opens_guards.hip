// Tries: to make the pages between the tensors writable again, and to write over everything up to the end of the one behind
// its output, besides the right answer. Refused by: canaries in front of that page (out_of_bounds).
#include "baseline.h"
#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int code = honest_softmax(y, x, rows, cols, stream);
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    char* behind = reinterpret_cast<char*>(y + static_cast<long long>(rows) * cols);
    const uintptr_t guard = (reinterpret_cast<uintptr_t>(behind) + page - 1) & ~(page - 1);
    if (mprotect(reinterpret_cast<void*>(guard), page, PROT_READ | PROT_WRITE) != 0) {
        return 1;
    }
    memset(behind, 1, guard + page - reinterpret_cast<uintptr_t>(behind));
    return code;
}
