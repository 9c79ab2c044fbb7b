// Honest: a plain call records its work into a graph of its own and launches that; a call that is being recorded adds
// its kernel to the caller's graph. Must pass. CUDA.
#include "baseline.h"

static cudaError_t launch_as_graph(float* y, const float* x, int rows, int cols, cudaStream_t stream) {
    static cudaStream_t own = nullptr;
    if (!own) {
        if (const cudaError_t code = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking)) {
            return code;
        }
    }
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    if (const cudaError_t code = cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal)) {
        return code;
    }
    const int launched = honest_softmax(y, x, rows, cols, own);
    cudaError_t code = cudaStreamEndCapture(own, &graph);
    if (launched) {
        return static_cast<cudaError_t>(launched);
    }
    if (code == cudaSuccess) {
        code = cudaGraphInstantiate(&executable, graph, 0);
    }
    if (code == cudaSuccess) {
        code = cudaGraphLaunch(executable, stream);
        cudaGraphExecDestroy(executable);  // the runtime waits with it until the launch is over
    }
    cudaGraphDestroy(graph);
    return code;
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (const cudaError_t code = cudaStreamIsCapturing(stream, &status)) {
        return code;
    }
    if (status == cudaStreamCaptureStatusActive) {
        return honest_softmax(y, x, rows, cols, stream);
    }
    return launch_as_graph(y, x, rows, cols, stream);
}
