// Tries: to find the expected answer in any readable memory of its own process, the shared arena included: a run of
// values that is a softmax of its first row. Refused by: expected values never are in its process (output_not_written).
#include <hip/hip_runtime.h>

#include <math.h>
#include <sys/uio.h>

#include <vector>

#include "tools.h"

// Minus the first row of the answer: minus, so that the search does not find this very row.
static std::vector<float> minus_first_row(const float* x, int cols) {
    std::vector<float> row(x, x + cols);
    float largest = row[0], sum = 0.0f;
    for (float value : row) {
        largest = fmaxf(largest, value);
    }
    for (float& value : row) {
        value = expf(value - largest);
        sum += value;
    }
    for (float& value : row) {
        value /= -sum;
    }
    return row;
}

static bool is_close(float found, float minus_wanted) { return fabsf(found + minus_wanted) <= -1e-4f * minus_wanted; }

// Copies the whole answer to y where it lies between start and end, as fp32 or as fp64.
template <typename T>
static bool copy_answer(const char* start, const char* end, const std::vector<float>& row, float* y, long long count) {
    const long long bytes = count * static_cast<long long>(sizeof(T));
    for (const char* at = start; at + bytes <= end; at += sizeof(T)) {
        const T* values = reinterpret_cast<const T*>(at);
        size_t same = 0;
        while (same < row.size() && is_close(static_cast<float>(values[same]), row[same])) {
            ++same;
        }
        if (same == row.size()) {
            for (long long i = 0; i < count; ++i) {
                y[i] = static_cast<float>(values[i]);
            }
            return true;
        }
    }
    return false;
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    const long long count = static_cast<long long>(rows) * cols;
    const std::vector<float> row = minus_first_row(x, cols);
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[512], mode[5];
    unsigned long start, end;
    long searched = 0;
    bool copied = false;
    while (maps && !copied && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) != 3 || mode[0] != 'r' || strstr(line, "[v")) {
            continue;
        }
        std::vector<char> bytes(end - start);
        iovec here = {bytes.data(), bytes.size()}, there = {reinterpret_cast<void*>(start), bytes.size()};
        const long got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
        const char* from = got > 0 ? bytes.data() : reinterpret_cast<const char*>(start);
        const char* to = got > 0 ? bytes.data() + got : reinterpret_cast<const char*>(end);
        if (mode[1] == 'w' || got > 0) {
            searched += to - from;
            copied = copy_answer<float>(from, to, row, y, count) || copy_answer<double>(from, to, row, y, count);
        }
    }
    if (maps) {
        fclose(maps);
    }
    printf("searched %ld bytes, %s\n", searched, copied ? "FOUND the answer" : "found nothing");
    fflush(stdout);
    return 0;
}
