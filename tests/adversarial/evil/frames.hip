// Tries: to confuse the judge by what it sends; the answer itself is right, or missing for 5. 0: 1 MiB at once, 1: another
// magic, 2: each answer twice, 3: an unknown status with the true number, 4: half an answer, then silence, 5: open files
// with an answer that comes before the work.
// Refused by: frames of one size that are taken one by one, within a time (protocol_broken, timeout, output_not_written).
#include "baseline.h"
#include "tools.h"

#ifndef FRAME
#define FRAME 0
#endif

static const char kSend[] = R"(
import array, os, socket, struct, sys
from akarena.worker import wire
kind = %d
frame = sys._getframe()
while not {"sock", "number"} <= frame.f_locals.keys():
    frame = frame.f_back
channel, asked = frame.f_locals["sock"], frame.f_locals["number"]
answer = lambda magic, status: struct.pack("<4sIQq", magic, status, asked, 0)
real = wire.send_answer
def once(*arguments):
    wire.send_answer = real
if kind == 0:
    channel.setblocking(False)
    try:
        channel.send(b"\xff" * (1 << 20))
    except BlockingIOError:
        pass
    channel.setblocking(True)
elif kind == 1:
    channel.sendall(answer(b"AKa2", 0))
elif kind == 2:
    channel.sendall(answer(b"AKa1", 0))
elif kind == 3:
    channel.sendall(answer(b"AKa1", 4000000000))
elif kind == 4:
    channel.sendall(answer(b"AKa1", 0)[:12])
    wire.send_answer = lambda *arguments: None
elif kind == 5:
    held = [os.open("/proc/self/status", os.O_RDONLY) for _ in range(200)]
    socket.send_fds(channel, [answer(b"AKa1", 0)], held)
    for one in held:
        os.close(one)
    wire.send_answer = once
)";

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    char text[4096];
    snprintf(text, sizeof text, kSend, FRAME);
    const int code = FRAME == 5 ? 0 : honest_softmax(y, x, rows, cols, stream);
    return hipStreamSynchronize(stream) == hipSuccess && run_python(text) ? code : 1;
}
