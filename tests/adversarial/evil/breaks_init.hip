// Tries: to break the sandbox's own init, number 1 of its pid namespace, by writing over its code: a sandbox that fails
// looks like a broken infrastructure, which would be tried again.
// Refused by: what dies of it is the candidate's own sandbox (crash, output_not_written); never void.
#include <hip/hip_runtime.h>

#include "tools.h"

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    FILE* maps = fopen("/proc/1/maps", "r");
    const int memory = open("/proc/1/mem", O_WRONLY);
    char line[512], mode[5];
    unsigned long start, end;
    long written = 0;
    while (maps && memory >= 0 && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) != 3 || strstr(line, "[v")) {
            continue;
        }
        static char junk[4096];
        memset(junk, 0xcc, sizeof junk);
        for (unsigned long at = start; at < end; at += sizeof junk) {
            written += pwrite(memory, junk, sizeof junk, static_cast<off_t>(at)) > 0;
        }
    }
    printf("wrote over %ld pages of init\n", written);
    fflush(stdout);
    sleep_ms(100);
    return 0;
}
