// Tries: to have the compiler read a file that is not the candidate's: 0 the oracle as a header, 1 the job as assembler
// data, 2 the other side's source.
// Refused by: a build sees one source file and the headers (compile_error).
#include "baseline.h"

#ifndef FILE_KIND
#define FILE_KIND 0
#endif
#if FILE_KIND == 0
#include "/job/oracle.py"
#elif FILE_KIND == 1
asm(".pushsection .rodata\n.global stolen\nstolen: .incbin \"/job/job.json\"\n.popsection");
#else
#include "../../baseline/kernel.hip"
#endif

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return honest_softmax(y, x, rows, cols, stream);
}
