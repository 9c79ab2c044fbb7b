// Honest work that looks for structure in the inputs of recorded calls: four neighbouring values that appear again,
// perhaps scaled, in this call or in one of the two before. Where it finds any, products could be copied, so it spoils its
// own answer. Must pass, since there is none. CUDA.
#include "baseline.h"

#include <stdio.h>

#include <initializer_list>

struct Inputs {
    const float* a;
    const float* b;
};

__device__ int twins = 0;

// Special values repeat and tell nothing; others have low bits that are not all zero.
__device__ bool is_telling(float value) { return (__float_as_uint(value) & 0x3ff) != 0 && fabsf(value) > 1e-6f; }

__global__ void look(const float* own, const float* other, long long count) {
    const float* sample = own + 7;
    const bool telling = is_telling(sample[0]) && is_telling(sample[1]) && is_telling(sample[2]) && is_telling(sample[3]);
    if (!telling || sample[0] == sample[1] || sample[1] == sample[2]) {
        return;
    }
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long at = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; at + 4 < count; at += stride) {
        const float* there = other + at;
        if (there == sample) {
            continue;
        }
        const float ratio = there[0] / sample[0];
        bool twin = ratio != 0.0f;
        for (int i = 1; i < 4; ++i) {
            twin = twin && there[i] == sample[i] * ratio;
        }
        if (twin && atomicAdd(&twins, 1) < 8) {
            printf("twin: place %lld of %lld, ratio %g\n", at, count, ratio);
        }
    }
}

__global__ void spoil_if_found(float* c) {
    if (twins) {
        c[0] = NAN;
    }
}

static void compare(const float* own, const float* other, long long count, cudaStream_t stream) {
    if (other && count >= 32) {
        look<<<264, 256, 0, stream>>>(own, other, count);
    }
}

extern "C" int matmul(float* c, const float* a, const float* b, int m, int n, int k, hipStream_t stream) {
    static Inputs before[2] = {};
    static int recorded = 0;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    const int code = honest_matmul(c, a, b, m, n, k, stream);
    if (status != cudaStreamCaptureStatusActive) {
        return code;
    }
    if (a <= before[0].a) {
        // Calls are recorded by rising addresses: these are laid out anew, and what was before does not count.
        before[0] = before[1] = {};
        recorded = 0;
    }
    if (recorded++ < 6) {
        for (const Inputs& other : {Inputs{a, b}, before[0], before[1]}) {
            compare(a, other.a, static_cast<long long>(m) * k, stream);
            compare(b, other.b, static_cast<long long>(k) * n, stream);
        }
    }
    before[1] = before[0];
    before[0] = {a, b};
    spoil_if_found<<<1, 1, 0, stream>>>(c);
    return code ? code : static_cast<int>(cudaGetLastError());
}
