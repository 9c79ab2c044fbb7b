// Tries: to return at once and to let a thread do the work 300 ms later.
// Refused by: outputs read when the answer comes (output_not_written); what comes later lands in a later layout, where it
// is one more fault.
#include "baseline.h"
#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    std::thread([=] {
        sleep_ms(300);
        honest_softmax(y, x, rows, cols, stream);
    }).detach();
    return 0;
}
