// Tries: to answer a checked call with the status that only a capture may give, so that the judge stumbles and the
// failure looks like a broken infrastructure, which would be tried again.
// Refused by: a status that does not belong to the request (protocol_broken); never void.
#include <hip/hip_runtime.h>

#include "tools.h"

static const char kSend[] = R"(
import sys
from akarena.worker import wire
frame = sys._getframe()
while not {"sock", "number"} <= frame.f_locals.keys():
    frame = frame.f_back
wire.send_answer(frame.f_locals["sock"], wire.Status.NOT_CAPTURABLE, frame.f_locals["number"])
wire.send_answer = lambda *arguments: None
)";

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return run_python(kSend) ? 0 : 1;
}
