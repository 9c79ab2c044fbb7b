// Tries: to take the worker's place while it is loaded: it reads the judge's requests from the channel and answers each
// one with "done" and its true number, without doing anything.
// Refused by: an answer only says that the judge may look at the output (output_not_written).
#include <hip/hip_runtime.h>

#include <stdlib.h>

#include "tools.h"

#pragma pack(push, 1)
struct Request {
    char magic[4];
    uint32_t command;
    uint64_t number;
    uint32_t length;
};
struct Answer {
    char magic[4];
    uint32_t status;
    uint64_t number;
    int64_t code;
};
#pragma pack(pop)

static const char kNumber[] = R"(
import os, sys
frame = sys._getframe()
while not {"sock", "number"} <= frame.f_locals.keys():
    frame = frame.f_back
os.environ["NUMBER"] = str(frame.f_locals["number"])
)";

static bool receive(void* to, size_t count) {
    char* at = static_cast<char*>(to);
    while (count) {
        const ssize_t got = read(kChannel, at, count);
        if (got <= 0) {
            return false;
        }
        at += got;
        count -= static_cast<size_t>(got);
    }
    return true;
}

static bool done(uint64_t number) {
    const Answer answer = {{'A', 'K', 'a', '1'}, 0, number, 0};
    return write(kChannel, &answer, sizeof answer) == sizeof answer;
}

__attribute__((constructor)) static void serve() {
    // The request to load this library was read by the worker; its number is in a frame of Python's.
    const char* number = run_python(kNumber) ? getenv("NUMBER") : nullptr;
    if (!number || !done(strtoull(number, nullptr, 10))) {
        _exit(1);
    }
    Request request;
    static char payload[1 << 20];
    while (receive(&request, sizeof request) && request.length <= sizeof payload && receive(payload, request.length)) {
        if (!done(request.number)) {
            break;
        }
    }
    _exit(0);
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) { return 0; }
