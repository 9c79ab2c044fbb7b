// Tries: to write "done" frames with guessed request numbers into the channel from a thread, while the work waits.
// Refused by: request numbers of 63 random bits (protocol_broken).
#include "baseline.h"
#include "tools.h"

#pragma pack(push, 1)
struct Frame {
    char magic[4];
    uint32_t status;
    uint64_t number;
    int64_t code;
};
#pragma pack(pop)

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static bool started = false;
    if (!started) {
        started = true;
        std::thread([] {
            for (uint64_t guess = 0; guess < 1000; ++guess) {
                const Frame frame = {{'A', 'K', 'a', '1'}, 0, guess, 0};
                if (write(kChannel, &frame, sizeof frame) < 0) {
                    return;
                }
                sleep_ms(1);
            }
        }).detach();
    }
    sleep_ms(20);
    return honest_softmax(y, x, rows, cols, stream);
}
