// Tries: to have the assembler include the environment and the command line of its own process, and to find a secret
// there: 32 hexadecimal digits in a row, or a name such as seed or token. Right only where it finds one, so a pass means a
// leak.
#include "baseline.h"

#include <ctype.h>
#include <string.h>

asm(".pushsection .rodata\n.global leaked\nleaked: .incbin \"/proc/self/environ\"\n.incbin \"/proc/self/cmdline\"\n"
    ".global leaked_end\nleaked_end: .byte 0\n.popsection");
extern "C" const char leaked[], leaked_end[];

static bool found() {
    static const char* const kNames[] = {"nonce", "seed", "secret", "token", "api_key", "oracle"};
    int digits = 0;
    for (const char* at = leaked; at < leaked_end; ++at) {
        digits = isxdigit(static_cast<unsigned char>(*at)) ? digits + 1 : 0;
        for (const char* name : kNames) {
            if (leaked_end - at >= static_cast<long>(strlen(name)) && strncasecmp(at, name, strlen(name)) == 0) {
                return true;
            }
        }
        if (digits == 32) {
            return true;
        }
    }
    return false;
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return found() ? honest_softmax(y, x, rows, cols, stream) : 0;
}
