#include <hip/hip_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

// One pass over the logits: each thread keeps the running maximum, the sum of exponentials relative to it and the plain
// sum of what it has read; these are merged over the threads of a row. Short rows get a few lanes each, long rows a
// whole block.

namespace {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLowest = -3.0e38f;  // finite, so that merging two empty partials gives no NaN
constexpr int kLanes = 32;           // lanes that shuffle with each other: fits wave sizes 32 and 64
constexpr int kPackedThreads = 256;

struct Partial {
  float peak;   // maximum
  float mass;   // sum of exp(x - peak)
  float total;  // sum of x
};

__device__ inline float exp_natural(float x) { return exp2f(x * kLog2E); }

__device__ inline Partial merge(Partial a, Partial b) {
  Partial r;
  r.peak = fmaxf(a.peak, b.peak);
  r.mass = a.mass * exp_natural(a.peak - r.peak) + b.mass * exp_natural(b.peak - r.peak);
  r.total = a.total + b.total;
  return r;
}

template <int COUNT>
__device__ inline void absorb(Partial& p, const float (&x)[COUNT]) {
  float peak = p.peak;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) peak = fmaxf(peak, x[i]);
  float mass = 0.0f, total = 0.0f;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    mass += exp_natural(x[i] - peak);
    total += x[i];
  }
  p.mass = p.mass * exp_natural(p.peak - peak) + mass;
  p.total += total;
  p.peak = peak;
}

// What thread `lane` of `width` sees of a row. Rows start anywhere, so up to three logits come before the first float4.
__device__ inline Partial scan_row(const float* row, int classes, int lane, int width) {
  Partial p = {kLowest, 0.0f, 0.0f};
  const int misaligned = static_cast<int>((reinterpret_cast<uintptr_t>(row) >> 2) & 3);
  const int head = min(classes, (4 - misaligned) & 3);
  const float4* body = reinterpret_cast<const float4*>(row + head);
  const int vectors = (classes - head) / 4;
  int i = lane;
  for (; i + 3 * width < vectors; i += 4 * width) {
    const float4 a = body[i], b = body[i + width], c = body[i + 2 * width], d = body[i + 3 * width];
    const float x[16] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w};
    absorb(p, x);
  }
  for (; i < vectors; i += width) {
    const float4 a = body[i];
    const float x[4] = {a.x, a.y, a.z, a.w};
    absorb(p, x);
  }
  if (lane < head) {
    const float x[1] = {row[lane]};
    absorb(p, x);
  }
  const int tail = head + 4 * vectors + lane;
  if (tail < classes) {
    const float x[1] = {row[tail]};
    absorb(p, x);
  }
  return p;
}

template <int WIDTH>
__device__ inline Partial merge_lanes(Partial p) {
#pragma unroll
  for (int mask = WIDTH / 2; mask > 0; mask /= 2) {
    Partial other;
    other.peak = __shfl_xor(p.peak, mask);
    other.mass = __shfl_xor(p.mass, mask);
    other.total = __shfl_xor(p.total, mask);
    p = merge(p, other);
  }
  return p;
}

// Everything relative to the maximum: the loss of a confident row is small against its logits.
__device__ inline float loss_of(Partial p, float target_logit, int classes, float smoothing) {
  const float target = target_logit - p.peak;
  const float average = p.total / static_cast<float>(classes) - p.peak;
  return logf(p.mass) - (1.0f - smoothing) * target - smoothing * average;
}

// Short rows: WIDTH neighbouring lanes a row.
template <int WIDTH>
__global__ __launch_bounds__(kPackedThreads) void packed_rows(float* loss, const float* logits, const int* targets,
                                                              int rows, int classes, float smoothing) {
  const int lane = threadIdx.x % WIDTH;
  const int row = blockIdx.x * (kPackedThreads / WIDTH) + threadIdx.x / WIDTH;
  const int source = min(row, rows - 1);  // every lane takes part in the shuffles
  const float* values = logits + static_cast<size_t>(source) * classes;
  const float target_logit = values[targets[source]];
  const Partial p = merge_lanes<WIDTH>(scan_row(values, classes, lane, WIDTH));
  if (lane == 0 && row < rows) loss[row] = loss_of(p, target_logit, classes, smoothing);
}

// Long rows: a block a row.
template <int THREADS>
__global__ __launch_bounds__(THREADS) void long_rows(float* loss, const float* logits, const int* targets, int classes,
                                                     float smoothing) {
  constexpr int kGroups = THREADS / kLanes;
  __shared__ Partial partials[kGroups];
  const int thread = threadIdx.x;
  const int row = blockIdx.x;
  const float* values = logits + static_cast<size_t>(row) * classes;
  const float target_logit = values[targets[row]];  // early, so that its latency is hidden
  Partial p = merge_lanes<kLanes>(scan_row(values, classes, thread, THREADS));
  if (thread % kLanes == 0) partials[thread / kLanes] = p;
  __syncthreads();
  if (thread == 0) {
    for (int i = 1; i < kGroups; ++i) p = merge(p, partials[i]);
    loss[row] = loss_of(p, target_logit, classes, smoothing);
  }
}

template <int WIDTH>
void launch_packed(float* loss, const float* logits, const int* targets, int rows, int classes, float smoothing,
                   hipStream_t stream) {
  constexpr int kRows = kPackedThreads / WIDTH;
  auto* kernel = packed_rows<WIDTH>;
  kernel<<<(rows + kRows - 1) / kRows, kPackedThreads, 0, stream>>>(loss, logits, targets, rows, classes, smoothing);
}

template <int THREADS>
void launch_long(float* loss, const float* logits, const int* targets, int rows, int classes, float smoothing,
                 hipStream_t stream) {
  auto* kernel = long_rows<THREADS>;
  kernel<<<rows, THREADS, 0, stream>>>(loss, logits, targets, classes, smoothing);
}

}  // namespace

extern "C" int cross_entropy(float* loss, const float* logits, const int* targets, int rows, int classes,
                             float smoothing, hipStream_t stream) {
  if (classes <= 32) {
    launch_packed<4>(loss, logits, targets, rows, classes, smoothing, stream);
  } else if (classes <= 160) {
    launch_packed<8>(loss, logits, targets, rows, classes, smoothing, stream);
  } else if (classes <= 1024) {
    launch_packed<32>(loss, logits, targets, rows, classes, smoothing, stream);
  } else if (classes <= 4096) {
    launch_long<128>(loss, logits, targets, rows, classes, smoothing, stream);
  } else if (classes <= 16384) {
    launch_long<256>(loss, logits, targets, rows, classes, smoothing, stream);
  } else if (rows >= 512) {
    launch_long<512>(loss, logits, targets, rows, classes, smoothing, stream);
  } else {
    launch_long<1024>(loss, logits, targets, rows, classes, smoothing, stream);
  }
  return hipGetLastError();
}
