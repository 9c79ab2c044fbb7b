"""The CPU headers: small HIP kernels, built with g++ and called through ctypes."""

import ctypes
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akarena.targets.chevrons import rewrite

INCLUDE = Path(__file__).parents[2] / "akarena" / "targets" / "include" / "cpu"
FLAGS = ("-x", "c++", "-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-pthread", f"-I{INCLUDE}")

SUCCESS, INVALID_CONFIGURATION, LAUNCH_FAILURE = 0, 9, 719

KERNELS = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>

// Any kernel of (const T*, T*, int), launched from a C entry with grid, block and bytes of shared memory.
#define ENTRY(name, T, ...)                                                                                  \
  extern "C" int run_##name(const T* x, T* y, int n, const unsigned* g, const unsigned* b, unsigned bytes) { \
    __VA_ARGS__<<<dim3(g[0], g[1], g[2]), dim3(b[0], b[1], b[2]), bytes, 0>>>(x, y, n);                      \
    return hipGetLastError();                                                                                \
  }

__constant__ float scale[2];
__global__ void axpy(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale[1] * x[i] + y[i];
}
ENTRY(axpy, float, axpy)
extern "C" int set_scale(float s) { return hipMemcpyToSymbol(HIP_SYMBOL(scale), &s, 4, 4); }

template <class T>
__device__ __forceinline__ T wave_sum(T v) {
#pragma unroll
  for (int o = warpSize / 2; o > 0; o /= 2) v += __shfl_down(v, o);
  return v;
}
template <class T, int THREADS>
__global__ __launch_bounds__(THREADS) void block_sum(const T* x, T* y, int n) {
  __shared__ T parts[THREADS / 64];
  const int t = threadIdx.x;
  T v = t < n ? x[blockIdx.x * n + t] : T(0);
  v = wave_sum(v);
  if (t % 64 == 0) parts[t / 64] = v;
  __syncthreads();
  if (t == 0) {
    for (int i = 1; i < THREADS / 64; ++i) v += parts[i];
    y[blockIdx.x] = v;
  }
}
ENTRY(sum_float, float, block_sum<float, 256>)
ENTRY(sum_double, double, block_sum<double, 128>)

__global__ void reverse(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * n + threadIdx.x] = tile[n - 1 - threadIdx.x];
}
ENTRY(reverse, float, reverse)

namespace racy {
__global__ void reverse(const float* x, float* y, int n) {
  HIP_DYNAMIC_SHARED(float, tile)
  tile[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  y[blockIdx.x * n + threadIdx.x] = tile[n - 1 - threadIdx.x];
}
// Works in the natural order: each thread reads what a thread before it wrote.
__global__ void shift(const float* x, float* y, int n) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = threadIdx.x ? tile[threadIdx.x - 1] : 0;
}
}  // namespace racy
ENTRY(racy_reverse, float, racy::reverse)
ENTRY(racy_shift, float, racy::shift)

__global__ void leftover(const float* x, float* y, int n) {
  __shared__ float fixed[64];
  extern __shared__ float dynamic[];
  y[blockIdx.x * 128 + threadIdx.x] = fixed[threadIdx.x];
  y[blockIdx.x * 128 + 64 + threadIdx.x] = dynamic[threadIdx.x];
  fixed[threadIdx.x] = dynamic[threadIdx.x] = 0;
}
ENTRY(leftover, float, leftover)

__global__ void transpose(const float* x, float* y, int n) {
  __shared__ float tile[16][17];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < n && c < n) tile[threadIdx.y][threadIdx.x] = x[(blockIdx.z * n + r) * n + c];
  __syncthreads();
  c = blockIdx.y * 16 + threadIdx.x, r = blockIdx.x * 16 + threadIdx.y;
  if (r < n && c < n) y[(blockIdx.z * n + r) * n + c] = tile[threadIdx.x][threadIdx.y];
}
ENTRY(transpose, float, transpose)

__global__ void index3(const int* x, int* y, int n) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  y[block * n + thread] = block * 10000 + thread;
}
ENTRY(index3, int, index3)

__device__ int counter;
__global__ void atomics(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  atomicAdd(&y[0], v);
  atomicSub(&y[1], v);
  atomicMin(&y[2], v);
  atomicMax(&y[3], v);
  atomicOr(&y[4], 1 << v % 16);
  atomicXor(&y[5], v);
  atomicAdd(reinterpret_cast<float*>(&y[6]), 1.0);
  int seen = y[7];
  while (true) {
    const int old = atomicCAS(&y[7], seen, seen + 2);
    if (old == seen) break;
    seen = old;
  }
  atomicInc(reinterpret_cast<unsigned*>(&y[8]), 6u);
  if (atomicAdd(&counter, 1) == n - 1) y[9] = atomicExch(&counter, 0);
  atomicAdd(reinterpret_cast<unsigned long long*>(&y[10]), static_cast<unsigned long long>(v));
}
ENTRY(atomics, int, atomics)

// A lock between the threads of a block, which need each other to make progress.
__global__ void locked(const int* x, int* y, int n) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&y[0], 0, 1) == 0) {
      for (int i = 0; i < n; ++i) __threadfence();
      y[1] += 1;
      atomicExch(&y[0], 0);
      done = true;
    }
  }
}
ENTRY(locked, int, locked)

__global__ void votes(const unsigned long long* x, unsigned long long* y, int n) {
  const int t = threadIdx.x;
  unsigned long long* out = y + t * 8;
  out[0] = __ballot(t % 3 == 0);
  out[1] = __any(t == 5) * 2 + __all(t < 100);
  if (t % 2) out[2] = __activemask();
  out[3] = __popcll(__ballot(1)) * 100 + __ffsll(12) * 10 + __clz(1);
  out[4] = __syncthreads_count(t < 7) * 10000 + __syncthreads_and(t < 96) * 10 + __syncthreads_or(t == 95);
  out[5] = __shfl(t, 3, 16) * 10000 + __shfl_up(t, 1, 32) * 100 + __shfl_xor(t % 64, 1);
  out[6] = __brev(1u) + __popc(255u);
  if (t < 10) return;
  out[7] = __ballot(1);
}
ENTRY(votes, unsigned long long, votes)

// Lanes leave a loop at different times; those that stay go on with each other.
__global__ void staggered(const int* x, int* y, int n) {
  int trips = 0;
  for (int i = 0; i <= static_cast<int>(threadIdx.x); ++i) trips += __popcll(__ballot(1));
  y[threadIdx.x] = trips;
}
ENTRY(staggered, int, staggered)

__global__ void some_exit(const float* x, float* y, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  y[threadIdx.x] = 1;
}
ENTRY(some_exit, float, some_exit)
__global__ void two_barriers(const float* x, float* y, int n) {
  if (threadIdx.x < n)
    __syncthreads();
  else
    __syncthreads();
}
ENTRY(two_barriers, float, two_barriers)

__global__ void far_write(const float* x, float* y, int n) {
  if (threadIdx.x == 3 && blockIdx.y == 1) y[static_cast<size_t>(n) << 12] = 1;
}
ENTRY(far_write, float, far_write)
__global__ void long_shared(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  tile[n] = 1;
}
ENTRY(long_shared, float, long_shared)
__device__ float deep(const float* x, int n) {
  volatile float local[64];
  local[n % 64] = x[0];
  return n ? deep(x, n - 1) + local[n % 64] : 0;
}
__global__ void overflow(const float* x, float* y, int n) { y[0] = deep(x, n); }
ENTRY(overflow, float, overflow)

// Both 16-bit types: y[0:n] = the bits of x as float, y[n:] the rounded results of five operations.
template <class T>
__global__ void formats(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T v;
  const unsigned short bits = i;
  memcpy(&v, &bits, 2);
  y[i] = static_cast<float>(v);
  const T a(x[i]), b(x[(i + 1) % n]), c(x[(i + 2) % n]);
  y[n + i] = a;
  y[2 * n + i] = a + b;
  y[3 * n + i] = __hmul(a, b);
  y[4 * n + i] = a / b;
  y[5 * n + i] = __hfma(a, b, c);
  y[6 * n + i] = T(1.0 + 0x1p-9 + 0x1p-40);
}
ENTRY(half, float, formats<__half>)
ENTRY(bfloat, float, formats<hip_bfloat16>)
__global__ void native_half(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = static_cast<float>(static_cast<_Float16>(x[i]));
}
ENTRY(native_half, float, native_half)
__global__ void pairs(const float* x, float* y, int n) {
  const half2 h = __floats2half2_rn(x[0], x[1]);
  const float2 f = __half22float2(__hfma2(h, h, __float2half2_rn(1.0f)));
  float4 v = make_float4(f.x, f.y, __low2float(h), __bfloat162float(__float2bfloat16(x[1])));
  v = v * 2.0f + make_float4(1, 1, 1, 1);
  *reinterpret_cast<float4*>(y) = v;
  y[4] = __expf(1.0f) + __fdividef(1.0f, 4.0f) + rsqrtf(4.0f) + min(2.0f, 3.0f) + max(1u, 2);
  y[5] = __float2int_rn(2.5f) + __float2int_rz(-1e20f) + __uint_as_float(__float_as_uint(0.5f));
}
ENTRY(pairs, float, pairs)
"""

CRASH = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
x, y = (ctypes.c_float * 256)(), (ctypes.c_float * 256)()
shape = ctypes.c_uint * 3
print(getattr(lib, sys.argv[2])(x, y, int(sys.argv[3]), shape(2, 2, 1), shape(64, 1, 1), 256))
"""

Array = npt.NDArray[Any]
Run = Callable[..., int]


def compile_library(source: str, target: Path) -> str:
    """Builds a HIP source as the cpu target does. Without g++ the tests fail: the target needs it."""
    cpp = target.with_suffix(".cpp")
    cpp.write_text('#line 1 "kernels.hip"\n' + rewrite(source))
    done = subprocess.run(["g++", *FLAGS, str(cpp), "-o", str(target)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="session")
def library_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hip") / "kernels.so"
    assert compile_library(KERNELS, path) == ""
    return path


@pytest.fixture(scope="session")
def library(library_path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(library_path))


@pytest.fixture
def run(library: ctypes.CDLL) -> Run:
    """Calls run_<name>(x, y, n) and returns the HIP error."""
    set_seed(library, 0)

    def call(
        name: str,
        x: Array,
        y: Array,
        n: int,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (256, 1, 1),
        shared_bytes: int = 0,
    ) -> int:
        shape = ctypes.c_uint * 3
        entry = getattr(library, f"run_{name}")
        pointers = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        return int(entry(*pointers, n, shape(*grid), shape(*block), ctypes.c_uint(shared_bytes)))

    return call


def set_seed(library: ctypes.CDLL, seed: int) -> None:
    library.hip_on_cpu_set_order_seed(ctypes.c_ulonglong(seed))


def random_floats(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_arithmetic_and_constants(library: ctypes.CDLL, run: Run, seed: int) -> None:
    x, y = random_floats(100_001), random_floats(100_001)[::-1].copy()
    expected = np.float32(2.5) * x + y
    library.set_scale(ctypes.c_float(2.5))
    set_seed(library, seed)
    assert run("axpy", x, y, len(x), grid=(391, 1, 1)) == SUCCESS
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("seed", [0, 5, 6])
@pytest.mark.parametrize(
    ("name", "dtype", "threads"), [("sum_float", np.float32, 256), ("sum_double", np.float64, 128)]
)
def test_template_reduction(
    library: ctypes.CDLL, run: Run, seed: int, name: str, dtype: type[np.generic], threads: int
) -> None:
    x, y = random_floats(40, 100).astype(dtype), np.zeros(40, dtype)
    set_seed(library, seed)
    assert run(name, x, y, 100, grid=(40, 1, 1), block=(threads, 1, 1)) == SUCCESS
    np.testing.assert_allclose(y, x.sum(axis=1), rtol=1e-4)


def test_missing_barrier_shows_under_some_seeds_and_the_right_kernel_passes_all(library: ctypes.CDLL, run: Run) -> None:
    x = random_floats(4, 256)
    wrong = 0
    for seed in range(20):
        set_seed(library, seed)
        y = np.zeros_like(x)
        assert run("reverse", x, y, 256, grid=(4, 1, 1), shared_bytes=1024) == SUCCESS
        np.testing.assert_array_equal(y, x[:, ::-1])
        assert run("racy_reverse", x, y, 256, grid=(4, 1, 1), shared_bytes=1024) == SUCCESS
        wrong += not np.array_equal(y, x[:, ::-1])
    assert wrong == 20


def test_race_that_the_natural_order_hides_shows_under_seeds(library: ctypes.CDLL, run: Run) -> None:
    x, y = random_floats(256), np.zeros(256, np.float32)
    expected = np.concatenate([[np.float32(0)], x[:-1]])
    outcomes = []
    for seed in range(20):
        set_seed(library, seed)
        assert run("racy_shift", x, y, 256) == SUCCESS
        outcomes.append(np.array_equal(y, expected))
    assert outcomes[0]
    assert not any(outcomes[1:])


def test_a_seed_gives_the_same_order_again(library: ctypes.CDLL, run: Run) -> None:
    x, first, again, other = random_floats(256), *(np.zeros(256, np.float32) for _ in range(3))
    for seed, y in ((3, first), (3, again), (4, other)):
        set_seed(library, seed)
        run("racy_shift", x, y, 256)
    np.testing.assert_array_equal(first.view(np.uint32), again.view(np.uint32))
    assert not np.array_equal(first.view(np.uint32), other.view(np.uint32))


def test_shared_memory_starts_with_junk_that_differs(library: ctypes.CDLL, run: Run) -> None:
    results = []
    for seed in (0, 1):
        set_seed(library, seed)
        y = np.zeros((3, 128), np.float32)
        assert run("leftover", y, y, 0, grid=(3, 1, 1), block=(64, 1, 1), shared_bytes=256) == SUCCESS
        results.append(y.view(np.uint32))
    rows = np.concatenate(results)
    assert len(np.unique(rows)) > 0.99 * rows.size


@pytest.mark.parametrize("seed", [0, 9])
def test_two_and_three_dimensions(library: ctypes.CDLL, run: Run, seed: int) -> None:
    set_seed(library, seed)
    x, y = random_floats(3, 40, 40), np.zeros((3, 40, 40), np.float32)
    assert run("transpose", x, y, 40, grid=(3, 3, 3), block=(16, 16, 1)) == SUCCESS
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))
    out = np.zeros((24, 105), np.int32)
    assert run("index3", out, out, 105, grid=(2, 3, 4), block=(3, 5, 7)) == SUCCESS
    np.testing.assert_array_equal(out, np.arange(24)[:, None] * 10000 + np.arange(105))


@pytest.mark.parametrize("seed", [0, 11])
def test_atomics(library: ctypes.CDLL, run: Run, seed: int) -> None:
    set_seed(library, seed)
    n = 20 * 256
    x = np.random.default_rng(1).integers(0, 1000, n).astype(np.int32)
    y = np.zeros(12, np.int32)
    y[2] = 10**6
    assert run("atomics", x, y, n, grid=(20, 1, 1)) == SUCCESS
    total = int(x.sum())
    expected = [total, -total, x.min(), x.max(), np.bitwise_or.reduce(1 << x % 16), np.bitwise_xor.reduce(x)]
    assert y[:6].tolist() == expected
    assert y[6:7].view(np.float32)[0] == n
    assert y[7:10].tolist() == [2 * n, n % 7, n]
    assert y[10:12].view(np.int64)[0] == total


@pytest.mark.parametrize("seed", [0, 13])
def test_threads_that_wait_for_a_lock_make_progress(library: ctypes.CDLL, run: Run, seed: int) -> None:
    set_seed(library, seed)
    y = np.zeros(2, np.int32)
    assert run("locked", y, y, 30, grid=(4, 1, 1)) == SUCCESS
    assert y.tolist() == [0, 1024]


@pytest.mark.parametrize("seed", [0, 17])
def test_wave_operations(library: ctypes.CDLL, run: Run, seed: int) -> None:
    set_seed(library, seed)
    y = np.zeros((96, 8), np.uint64)
    assert run("votes", y, y, 0, block=(96, 1, 1)) == SUCCESS
    lanes, thirds = (64, 32), [sum(1 << i for i in range(k) if (w * 64 + i) % 3 == 0) for w, k in enumerate((64, 32))]
    for t in range(96):
        wave, lane = divmod(t, 64)
        odd = sum(1 << i for i in range(1, lanes[wave], 2))
        up = t - 1 if t % 32 else t
        assert y[t].tolist() == [
            thirds[wave],
            (2 if wave == 0 else 0) + 1,
            odd if t % 2 else 0,
            lanes[wave] * 100 + 30 + 31,
            7 * 10000 + 10 + 1,
            (t // 16 * 16 + 3) * 10000 + up * 100 + (lane ^ 1),
            2**31 + 8,
            0 if t < 10 else ((2**64 - 1) & ~1023 if wave == 0 else 2**32 - 1),
        ]
    trips = np.zeros(64, np.int32)
    assert run("staggered", trips, trips, 0, block=(64, 1, 1)) == SUCCESS
    np.testing.assert_array_equal(trips, np.cumsum(np.arange(64, 0, -1)))


def test_barrier_divergence_is_reported(library: ctypes.CDLL, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    y = np.zeros(256, np.float32)
    line = 1 + KERNELS[: KERNELS.index("__syncthreads();\n  y[threadIdx.x] = 1")].count("\n")
    assert run("some_exit", y, y, 200, grid=(7, 1, 1)) == LAUNCH_FAILURE
    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert message.startswith("hip-on-cpu: kernel some_exit, block (")
    assert f"200 of 256 threads wait in __syncthreads at kernels.hip:{line}, the others have ended" in message
    assert run("two_barriers", y, y, 64) == LAUNCH_FAILURE
    assert "barrier divergence: thread (0,0,0) waits" in capfd.readouterr().err
    assert run("some_exit", y, y, 256) == SUCCESS, "the next launch starts clean"
    assert y.sum() == 256
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("grid", "block", "shared_bytes"),
    [
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (32, 33, 1), 0),
        ((1, 1, 1), (0, 1, 1), 0),
        ((0, 1, 1), (64, 1, 1), 0),
        ((1, 65536, 1), (64, 1, 1), 0),
        ((1, 1, 1), (64, 1, 1), 65537),
    ],
)
def test_illegal_launches(
    run: Run,
    capfd: pytest.CaptureFixture[str],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
) -> None:
    y = np.zeros(1, np.float32)
    assert run("axpy", y, y, 1, grid, block, shared_bytes) == INVALID_CONFIGURATION
    assert capfd.readouterr().err.startswith("hip-on-cpu: kernel axpy: invalid configuration: a ")


def test_largest_legal_launch(run: Run) -> None:
    x, y = random_floats(1024), np.zeros(1024, np.float32)
    assert run("reverse", x, y, 1024, block=(1024, 1, 1), shared_bytes=65536) == SUCCESS
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.parametrize(
    ("entry", "n", "message"),
    [
        (
            "run_far_write",
            2**30,
            r"invalid memory access at 0x[0-9a-f]+ in kernel far_write, block \([01],1,0\), thread \(3,0,0\)$",
        ),
        ("run_long_shared", 64, "kernel long_shared, .*, past the end of dynamic shared memory$"),
        ("run_overflow", 10**6, "stack overflow at 0x[0-9a-f]+ in kernel overflow, block"),
    ],
)
def test_crash_names_kernel_block_and_thread(library_path: Path, entry: str, n: int, message: str) -> None:
    command = [sys.executable, "-c", CRASH, str(library_path), entry, str(n)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert done.stderr.startswith("hip-on-cpu: ")
    lines = done.stderr.splitlines()
    assert re.search(message, lines[0])


def test_half_matches_numpy(run: Run) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    x = half_inputs()
    y = np.zeros((7, 65536), np.float32)
    assert run("half", x, y, 65536, grid=(256, 1, 1)) == SUCCESS
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y[0], bits.view(np.float16).astype(np.float32))
        a = x.astype(np.float16)
        b, c = np.roll(a, -1), np.roll(a, -2)
        fused = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)  # a tie of half fits in 53 bits
        for row, expected in enumerate((a, a + b, a * b, a / b, fused.astype(np.float16)), start=1):
            np.testing.assert_array_equal(y[row], expected.astype(np.float32))
    assert y[6, 0] == np.float32(np.float16(1.0 + 2**-9 + 2**-40))
    assert run("native_half", x, y, 65536, grid=(256, 1, 1)) == SUCCESS
    np.testing.assert_array_equal(y[0], a.astype(np.float32))


def half_inputs() -> Array:
    """Floats of all sizes around the range of half, with ties, infinities and NaN."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(65536) * 2.0 ** rng.integers(-27, 18, 65536)).astype(np.float32)
    ties = (rng.integers(0, 2**16, 20000).astype(np.uint16).view(np.float16)).astype(np.float32)
    x[:20000] = (ties.view(np.uint32) | np.uint32(0x1000)).view(np.float32)
    x[20000:20006] = [np.inf, -np.inf, np.nan, 65520.0, 65519.996, -0.0]
    return x


def test_bfloat_rounds_to_nearest_even(run: Run) -> None:
    bits = np.arange(65536, dtype=np.uint32)
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2**32, 65536, dtype=np.uint32)
    x[:30000] = (x[:30000] & 0xFFFF0000) | 0x8000
    x = x.view(np.float32)
    y = np.zeros((7, 65536), np.float32)
    assert run("bfloat", x, y, 65536, grid=(256, 1, 1)) == SUCCESS
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y[0], (bits << 16).view(np.float32))
        a = round_to_bfloat(x)
        b = np.roll(a, -1)
        for row, expected in enumerate((x, a + b, a * b, a / b), start=1):
            np.testing.assert_array_equal(y[row], round_to_bfloat(expected))
    assert y[6, 0] == np.float32(1.0)


def round_to_bfloat(x: Array) -> Array:
    """An independent rounding: of the two neighbours in bfloat16, the nearer one, or the even one of equals."""
    low = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    rest = x.view(np.uint32) & np.uint32(0xFFFF)
    odd = (x.view(np.uint32) >> 16) & 1
    up = (rest > 0x8000) | ((rest == 0x8000) & (odd == 1))
    high = (low.view(np.uint32) + np.uint32(0x10000)).view(np.float32)
    result: Array = np.where(np.isnan(x), np.float32(np.nan), np.where(up & ~np.isnan(x), high, low))
    return result


def test_pairs_vectors_and_intrinsics(run: Run) -> None:
    x, y = np.array([1.5, 3.0], np.float32), np.zeros(8, np.float32)
    assert run("pairs", x, y, 2, block=(1, 1, 1)) == SUCCESS
    assert y[:4].tolist() == [2 * 3.25 + 1, 2 * 10.0 + 1, 4.0, 7.0]
    assert y[4] == pytest.approx(np.e + 0.25 + 0.5 + 2 + 2)
    assert y[5] == np.float32(2 - 2**31 + 0.5)


def test_address_sanitizer_names_the_line(tmp_path: Path) -> None:
    source = r"""
#include <hip/hip_runtime.h>
__global__ void fill(float* x, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x + n] = tile[63 - threadIdx.x] + __shfl_xor(1.0f, 1);
}
int main(int count, char**) {
  float* x;
  if (hipMalloc(&x, 64 * sizeof(float)) != hipSuccess) return 2;
  fill<<<3, 64>>>(x, count - 1);
  return hipGetLastError() != hipSuccess || hipFree(x) != hipSuccess || x == nullptr;
}
"""
    cpp, program = tmp_path / "fill.cpp", tmp_path / "fill"
    cpp.write_text('#line 1 "fill.hip"\n' + rewrite(source))
    flags = [flag for flag in FLAGS if flag != "-shared"]
    subprocess.run(["g++", *flags, "-fsanitize=address", "-g", str(cpp), "-o", str(program)], check=True)
    assert subprocess.run([str(program)], capture_output=True).returncode == 0
    broken = subprocess.run([str(program), "one too many"], capture_output=True, text=True)
    assert broken.returncode != 0
    assert "heap-buffer-overflow" in broken.stderr
    assert "fill.hip:7" in broken.stderr
