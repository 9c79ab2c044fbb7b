// Tries: to start two fifths of the calls of a replay as soon as it sees fresh poison in their outputs, while the judge
// is still preparing, and to replay the rest only. Without fresh poison all are run in the replay. CUDA.
// Gains nothing: what is computed before the clock starts must be noticed (answered_early, wrong_when_timed).
#include "baseline.h"
#include "tools.h"

#include <math.h>

#include <atomic>
#include <mutex>
#include <vector>

struct Call {
    float* y;
    const float* x;
    int rows, cols;
};

static std::mutex mutex;
static std::vector<Call> early;
static size_t wanted = 0;
static bool launched = false;  // whether the early calls run for the coming replay
static std::atomic<bool> watching{false};
static cudaStream_t own = nullptr, copies = nullptr;
static int runs = 0;

static void launch_early() {
    for (const Call& call : early) {
        honest_softmax(call.y, call.x, call.rows, call.cols, own);
    }
    launched = true;
}

static void watch() {
    cudaSetDevice(0);
    float* seen = nullptr;
    if (cudaMallocHost(&seen, sizeof *seen) != cudaSuccess) {
        return;
    }
    for (;;) {
        usleep(10);
        const std::lock_guard<std::mutex> lock(mutex);
        if (!watching || launched || early.empty()) {
            continue;
        }
        const Call& last = early.back();
        const float* place = last.y + static_cast<long long>(last.rows) * last.cols - 1;
        cudaMemcpyAsync(seen, place, sizeof *seen, cudaMemcpyDeviceToHost, copies);
        if (cudaStreamSynchronize(copies) == cudaSuccess && isnan(*seen)) {
            launch_early();
            ++runs;
        }
    }
}

extern "C" void begin_capture(int sets) {
    const std::lock_guard<std::mutex> lock(mutex);
    early.clear();
    wanted = static_cast<size_t>(sets) * 2 / 5;
    launched = false;
    watching = false;
}

extern "C" void before_replay() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!launched) {
        launch_early();
    }
}

extern "C" void after_replay() {
    const std::lock_guard<std::mutex> lock(mutex);
    launched = false;
    watching = true;
}

extern "C" int early_runs() { return runs; }

static const char kHook[] = R"(
import ctypes
from akarena.worker.entries import NativeEntry
library = ctypes.CDLL("/kernel/kernel.so")
capture, prepare, replay = NativeEntry.capture, NativeEntry.prepare, NativeEntry.replay
def capture_rest(self, sets):
    library.begin_capture(sets)
    capture(self, sets)
def stop_first(self, *arguments):
    library.begin_capture(0)
    print("early runs so far:", library.early_runs(), flush=True)
    prepare(self, *arguments)
def replay_rest(self, which):
    library.before_replay()
    replay(self, which)
    library.after_replay()
NativeEntry.capture, NativeEntry.prepare, NativeEntry.replay = capture_rest, stop_first, replay_rest
)";

static const bool ready = [] {
    if (cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking) != cudaSuccess || !run_python(kHook)) {
        return false;
    }
    std::thread(watch).detach();
    return true;
}();

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusActive) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (early.size() < wanted) {
            early.push_back({y, x, rows, cols});
            return 0;
        }
    }
    return ready ? honest_softmax(y, x, rows, cols, stream) : 1;
}
