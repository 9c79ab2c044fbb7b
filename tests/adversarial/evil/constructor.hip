// Tries: to win or to break something while its library is loaded: 0 prints a verdict and ends with success, 1 sends a
// "done" and ends, 2 kills itself as the kernel does when memory is short, 3 becomes another program, 4 stops itself.
// Refused by: only its own worker loads it, and one that ends before its answer has failed (crash, protocol_broken,
// timeout).
#include "baseline.h"
#include "tools.h"

#ifndef DEED
#define DEED 0
#endif

__attribute__((constructor)) static void act() {
    if (DEED == 0) {
        puts("{\"evaluation\": {\"gates\": [{\"verdict\": \"pass\", \"gate\": \"seen_correct\"}]}}");
        fflush(stdout);
        _exit(0);
    } else if (DEED == 1) {
        const struct {
            char magic[4];
            uint32_t status;
            uint64_t number;
            int64_t code;
        } frame = {{'A', 'K', 'a', '1'}, 0, 1, 0};
        _exit(write(kChannel, &frame, sizeof frame) < 0);
    } else if (DEED == 2) {
        kill(getpid(), SIGKILL);
    } else if (DEED == 3) {
        char name[] = "python", option[] = "-c", text[] = "print('seen_correct: pass')";
        char* arguments[] = {name, option, text, nullptr};
        execv("/proc/self/exe", arguments);
    } else {
        kill(getpid(), SIGSTOP);
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return honest_softmax(y, x, rows, cols, stream);
}
