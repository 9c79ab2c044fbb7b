// Tries: to repeat each answer with a number one higher, as if the next call were done too, by overwriting libc's send
// when it is loaded; every second call does nothing.
#include "baseline.h"
#include "tools.h"

#include <sys/syscall.h>

// A frame: magic, status, number, code.
static long repeating_send(int descriptor, const void* data, size_t count, int flags) {
    const long sent = syscall(SYS_sendto, descriptor, data, count, flags, nullptr, 0);
    if (descriptor == kChannel && count == 24) {
        unsigned char frame[24];
        memcpy(frame, data, sizeof frame);
        uint64_t number;
        memcpy(&number, frame + 8, sizeof number);
        ++number;
        memcpy(frame + 8, &number, sizeof number);
        syscall(SYS_sendto, descriptor, frame, sizeof frame, flags, nullptr, 0);
    }
    return sent;
}

__attribute__((constructor)) static void load() {
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov rax, target; jmp rax
    const auto target = reinterpret_cast<uintptr_t>(repeating_send);
    memcpy(jump + 2, &target, sizeof target);
    overwrite(dlsym(RTLD_DEFAULT, "send"), jump, sizeof jump);
}

extern "C" int layer_norm(float* y, float* mean, float* rstd, const float* x, const float* weight, const float* bias,
                          int rows, int cols, float eps, hipStream_t stream) {
    static int calls = 0;
    return ++calls % 2 ? honest_layer_norm(y, mean, rstd, x, weight, bias, rows, cols, eps, stream) : 0;
}
