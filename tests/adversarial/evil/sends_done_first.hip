// Tries: to send "done" with the true request number, taken from the worker's own frames, 300 ms before the work, and to
// hold the worker's own answer back. Refused by: outputs read when the answer comes (output_not_written).
#include "baseline.h"
#include "tools.h"

static const char kSend[] = R"(
import sys
from akarena.worker import wire
frame = sys._getframe()
while not {"sock", "number"} <= frame.f_locals.keys():
    frame = frame.f_back
wire.send_answer(frame.f_locals["sock"], wire.Status.DONE, frame.f_locals["number"])
real = wire.send_answer
def swallow(*arguments):
    wire.send_answer = real
wire.send_answer = swallow
)";

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    if (!run_python(kSend)) {
        return 1;
    }
    sleep_ms(300);
    return honest_softmax(y, x, rows, cols, stream);
}
