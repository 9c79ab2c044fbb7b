// Tries: to leave a note for its next process, in the same judgement or the next: it ends its first process by force, so
// that another one is started, and is judged twice. It looks in folders, caches of compilers and of Python, shared memory,
// named sockets, and computes the right answer only where a note is found, so a pass means a leak.
// Refused by: every process starts with empty folders, and its code cannot be written (crash).
#include "baseline.h"
#include "tools.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static bool note_in(const char* folder) {
    char path[256];
    snprintf(path, sizeof path, "%s/akarena-note", folder);
    struct stat about;
    const bool found = stat(path, &about) == 0;
    if (found) {
        printf("FOUND note: %s\n", path);
        fflush(stdout);
    }
    mkdir(folder, 0700);
    const int descriptor = open(path, O_CREAT | O_WRONLY, 0600);
    if (descriptor >= 0) {
        close(descriptor);
    }
    return found;
}

// A name outside the file system, held by a child that outlives its parent.
static bool named_socket() {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    memcpy(name.sun_path + 1, "akarena-note", 12);
    const int one = socket(AF_UNIX, SOCK_STREAM, 0);
    const bool found = connect(one, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
    close(one);
    if (!found && fork() == 0) {
        setsid();
        const int other = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(other, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) {
            listen(other, 1);
        }
        sleep_ms(60000);
        _exit(0);
    }
    return found;
}

static bool any_note() {
    bool any = named_socket();
    for (const char* folder :
         {"/tmp", "/var/tmp", "/dev/shm", "/run", "/home/user", "/home/user/.cache", "/home/user/.nv",
          "/home/user/.nv/ComputeCache", "/home/user/.triton", "/tmp/triton", "/kernel", "/akarena",
          "/akarena/akarena/worker", "/akarena/akarena/worker/__pycache__", "/proc/self/fd"}) {
        any |= note_in(folder);
    }
    if (const char* cache = getenv("CUDA_CACHE_PATH")) {
        any |= note_in(cache);
    }
    return any;
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static const bool found = any_note();
    if (!found) {
        sleep_ms(50);
        _exit(1);
    }
    return honest_softmax(y, x, rows, cols, stream);
}
