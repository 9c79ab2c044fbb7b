// Tries: to keep the compiler busy or to fill its memory: 0 a file that includes itself, 1 templates that make two more of
// their kind each, 2 a constant that takes endless steps, 3 an object of 64 GB.
// Refused by: limits of the compiler, and those of the build (compile_error, compile_timeout, compile_resources).
#ifndef BOMB
#define BOMB 0
#endif
#if BOMB == 0
#include "/source/kernel.hip"
#endif
#include "baseline.h"

#if BOMB == 1
template <int N, int M>
struct Twice {
    static constexpr int value = Twice<N + 1, 2 * M % 1000003>::value + Twice<N + 1, (2 * M + 1) % 1000003>::value;
};
static const int many = Twice<0, 1>::value;
#elif BOMB == 2
constexpr long long endless() {
    long long sum = 0;
    for (long long i = 0; i < (1ll << 62); ++i) {
        sum += i;
    }
    return sum;
}
constexpr long long steps = endless();
#elif BOMB == 3
char large[1ull << 36] = {1};
#endif

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return honest_softmax(y, x, rows, cols, stream);
}
