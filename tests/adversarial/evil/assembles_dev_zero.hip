// Tries: to have the assembler include /dev/zero, which never ends, so that the build fills memory or disk.
#include "baseline.h"

asm(".pushsection .rodata\n.global endless\nendless: .incbin \"/dev/zero\"\n.popsection");

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return honest_softmax(y, x, rows, cols, stream);
}
