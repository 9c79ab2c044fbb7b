// Tries: to run out of stack, to jump back from a handler on another stack, and to claim success with a constant for an
// answer.
#include <hip/hip_runtime.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf back;
static volatile int sink;

static void caught(int) { siglongjmp(back, 1); }

static int __attribute__((noinline)) deep(int n) {
    volatile char room[4096];
    room[n % 4096] = static_cast<char>(n);
    sink = room[0];
    return deep(n + 1) + room[1];
}

__global__ void fill(float* loss) { loss[blockIdx.x] = 5.0f; }

extern "C" int cross_entropy(float* loss, const float* logits, const int* targets, int rows, int classes,
                             float smoothing, hipStream_t stream) {
    static stack_t other;
    other.ss_sp = malloc(1 << 20);
    other.ss_size = 1 << 20;
    sigaltstack(&other, nullptr);
    struct sigaction action = {};
    action.sa_handler = caught;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    if (sigsetjmp(back, 1) == 0) {
        return deep(0);
    }
    fill<<<rows, 1, 0, stream>>>(loss);
    return hipGetLastError();
}
