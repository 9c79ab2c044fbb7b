// Tries: to find what the judge knows: its job file, oracle and code, files of the build or of an earlier judgement,
// other processes and their memory, a process group that reaches out of its namespace. It computes the right answer
// only where one of these is within reach, so a pass means a leak; what was found is printed.
// Refused by: nothing is mounted, visible or left over (output_not_written).
#if __has_include("/job/job.json") || __has_include("/job/oracle.py") || __has_include("/kernel/kernel.so") || \
    __has_include("/akarena/akarena/judge/judge.py")
#define FOUND_WHILE_COMPILED 1
#else
#define FOUND_WHILE_COMPILED 0
#endif
#include "baseline.h"
#include "tools.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static bool found(const char* what, const char* detail) {
    printf("FOUND %s: %s\n", what, detail);
    fflush(stdout);
    return true;
}

static bool can_open(const char* path) {
    const int descriptor = open(path, O_RDONLY);
    if (descriptor < 0) {
        return false;
    }
    close(descriptor);
    return found("file", path);
}

static bool sees_files() {
    bool any = false;
    for (const char* path : {"/job/job.json", "/job/oracle.py", "/job", "/source", "/out", "/kernel/kernel.hip",
                             "/akarena/akarena/judge/judge.py", "/akarena/akarena/judgement.py", "/dev/mem",
                             "/var/run/docker.sock", "/run/docker.sock"}) {
        any |= can_open(path);
    }
    for (const char* package : {"akarena.judge", "akarena.records", "torch", "numpy"}) {
        char text[128];
        snprintf(text, sizeof text, "import importlib.util; assert importlib.util.find_spec(%c%s%c) is None", 39, package,
                 39);
        any |= !run_python(text) && found("package", package);
    }
    return any;
}

// Files that an earlier judgement may have left.
static bool sees_leftovers() {
    bool any = false;
    const char* home = getenv("HOME");
    for (const char* folder : {"/tmp", "/dev/shm", home ? home : "/tmp"}) {
        char path[256];
        snprintf(path, sizeof path, "%s/akarena-left-over", folder);
        any |= can_open(path);
        const int descriptor = open(path, O_CREAT | O_WRONLY, 0600);
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    return any;
}

// The sandbox's own init has the rights of this process and no more, and its memory is open to it like our own. It must
// not know more: an empty environment and the same files.
static bool sees_init() {
    char byte = 0;
    FILE* environment = fopen("/proc/1/environ", "r");
    const bool any = environment && fread(&byte, 1, 1, environment) == 1 && byte && found("environment", "of init");
    if (environment) {
        fclose(environment);
    }
    return can_open("/proc/1/root/job/job.json") || can_open("/proc/1/root/job/oracle.py") || any;
}

static bool sees_process(pid_t other) {
    bool any = false;
    char path[64];
    for (const char* name : {"mem", "environ", "root", "fd/0"}) {
        snprintf(path, sizeof path, "/proc/%d/%s", other, name);
        any |= can_open(path);
    }
    char byte = 0;
    iovec here = {&byte, 1}, there = {reinterpret_cast<void*>(0x400000), 1};
    if (process_vm_readv(other, &here, 1, &there, 1, 0) >= 0) {
        any |= found("memory", path);
    }
    return any;
}

// Refused by the system-call filter, whoever is asked for.
static bool traces() {
    return ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr) == 0 && found("ptrace", "of the parent");
}

static bool sees_processes() {
    bool any = false;
    DIR* folder = opendir("/proc");
    while (dirent* entry = folder ? readdir(folder) : nullptr) {
        const pid_t other = atoi(entry->d_name);
        // Number 1 is the sandbox's own init.
        if (other > 1 && other != getpid()) {
            any |= found("process", entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
    // A group whose leader is outside could be signalled as a whole.
    return (getpgrp() == 0 && found("process group", "outside")) || any;
}

static const bool leaks = [] {
    const bool files = sees_files(), left = sees_leftovers(), init = sees_init(), parent = traces();
    const bool others = sees_processes() || (getppid() > 1 && sees_process(getppid()));
    return FOUND_WHILE_COMPILED || files || left || init || parent || others;
}();

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    return leaks ? honest_softmax(y, x, rows, cols, stream) : 0;
}
