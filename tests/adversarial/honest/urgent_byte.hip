// Honest work that sends an out-of-band byte into the worker's channel before each answer: a mark in the stream where
// reads end early. It is no part of a frame. Must pass.
#include "baseline.h"

#include <sys/socket.h>

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const int code = honest_softmax(y, x, rows, cols, stream);
    hipDeviceSynchronize();
    send(3, "!", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL);
    return code;
}
