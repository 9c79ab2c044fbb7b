// Tries: to fill every folder that it may write, so that a later process finds no room. Refused by: each is a tmpfs of its
// own process with a size of its own (output_not_written); never void.
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static bool filled = false;
    // Empty files, which take inodes and no room.
    for (int count = 0; count < 20000 && !filled; ++count) {
        char path[64];
        snprintf(path, sizeof path, "%s/%d", count % 2 ? "/tmp" : "/dev/shm", count);
        const int descriptor = open(path, O_CREAT | O_WRONLY, 0600);
        if (descriptor < 0) {
            break;
        }
        close(descriptor);
    }
    filled = true;
    return 0;
}
