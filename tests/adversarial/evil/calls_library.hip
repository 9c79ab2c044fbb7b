// Tries: to have a library do the work: a vendor's, torch, or any BLAS. It computes the right answer only where one can be
// loaded, so a pass means a leak. Refused by: a worker has none (output_not_written).
#include "baseline.h"
#include "tools.h"

static bool any_library() {
    for (const char* name :
         {"libcublas.so", "libcublas.so.11", "libcublas.so.12", "libcublas.so.13", "libcublasLt.so.12",
          "libcublasLt.so.13", "libcudnn.so.8", "libcudnn.so.9", "libcusparse.so.12", "libtorch.so", "libtorch_cpu.so",
          "libtorch_cuda.so", "libtorch_python.so", "libc10.so", "librocblas.so.4", "libhipblas.so.2", "libhipblaslt.so",
          "libMIOpen.so.1", "libopenblas.so.0", "libblas.so.3", "libmkl_rt.so.2", "libnvrtc.so.12", "libnvrtc.so.13"}) {
        if (dlopen(name, RTLD_LAZY)) {
            printf("FOUND library: %s\n", name);
            fflush(stdout);
            return true;
        }
    }
    for (const char* symbol : {"cublasSgemm_v2", "cudnnSoftmaxForward", "cblas_sgemm", "rocblas_sgemm"}) {
        if (dlsym(RTLD_DEFAULT, symbol)) {
            printf("FOUND symbol: %s\n", symbol);
            fflush(stdout);
            return true;
        }
    }
    return false;
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static const bool found = any_library();
    return found ? honest_softmax(y, x, rows, cols, stream) : 0;
}
