// Tries: to break the device for the judge, so that a failure looks like a broken infrastructure: 0 an illegal access, 1 a
// trap, 2 a reset of its context, 3 a kernel that never ends, 4 it frees the judge's own memory. CUDA.
// Refused by: contexts of their own (device_fault, crash, timeout, returned_error, output_not_written); never void.
#include <hip/hip_runtime.h>

#ifndef HARM
#define HARM 0
#endif

__global__ void harm(float* y, volatile int* never) {
    if (HARM == 0) {
        *reinterpret_cast<volatile float*>(16) = 1.0f;
    } else if (HARM == 1) {
        asm volatile("trap;");
    } else {
        while (!*never) {
        }
    }
}

extern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t stream) {
    static int* never = nullptr;
    if (HARM == 2) {
        cudaDeviceReset();
        return 0;
    }
    if (HARM == 4) {
        cudaIpcCloseMemHandle(const_cast<float*>(x));
        cudaFree(const_cast<float*>(x));
        cudaFree(y);
        cudaGetLastError();
        return 0;
    }
    if (!never && (hipMalloc(&never, sizeof *never) != hipSuccess || hipMemset(never, 0, sizeof *never) != hipSuccess)) {
        return 1;
    }
    harm<<<1, 1, 0, stream>>>(y, never);
    return hipGetLastError();
}
