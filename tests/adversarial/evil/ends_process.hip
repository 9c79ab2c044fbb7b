// Tries: to end its process in the middle of a call: 0 with success, 1 by SIGKILL, as the kernel does when memory is short,
// 2 by a stop, 3 through a destructor that sends "done" with the true number, 4 by an exception, 5 by a jump out of the
// call, 6 by closing the channel, 7 by becoming another program.
// Refused by: an answer that never comes, or comes without an output (crash, timeout, output_not_written); never void.
#include <hip/hip_runtime.h>

#include <setjmp.h>
#include <stdlib.h>

#include <stdexcept>

#include "tools.h"

#ifndef END
#define END 0
#endif

static const char kSend[] = R"(
import sys
from akarena.worker import wire
frame = sys._getframe()
while not {"sock", "number"} <= frame.f_locals.keys():
    frame = frame.f_back
wire.send_answer(frame.f_locals["sock"], wire.Status.DONE, frame.f_locals["number"])
)";

static bool leaving = false;

__attribute__((destructor)) static void last_words() {
    if (leaving) {
        puts("seen_correct: pass");
        run_python(kSend);
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    char name[] = "python", option[] = "-c", text[] = "print('seen_correct: pass')";
    char* arguments[] = {name, option, text, nullptr};
    jmp_buf nowhere;
    memset(&nowhere, 0, sizeof nowhere);
    switch (END) {
        case 0:
            _exit(0);
        case 1:
            kill(getpid(), SIGKILL);
            break;
        case 2:
            kill(getpid(), SIGSTOP);
            break;
        case 3:
            leaving = true;
            exit(0);
        case 4:
            throw std::runtime_error("passed");
        case 5:
            longjmp(nowhere, 1);
        case 6:
            close(kChannel);
            sleep_ms(100);
            break;
        default:
            execv("/proc/self/exe", arguments);
    }
    return 0;
}
