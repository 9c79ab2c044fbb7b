#include <hip/hip_runtime.h>
#include <math.h>
#include <stddef.h>

// Fused attention with an online softmax: scores never leave the compute unit, and tiles of keys above the diagonal are
// skipped. A block holds a tile of queries in LDS and walks over tiles of 64 keys; a thread owns a few queries times
// four keys of the scores and the same queries times some columns of the output. Values are read through the cache, so
// that LDS holds queries and one tile of keys, whose place the weights take once they are known.
// Sequences of up to 32 go to a second kernel, where eight lanes share one query and nothing is staged.

namespace {

constexpr float kLog2E = 1.4426950408889634f;
constexpr int kThreads = 128;
constexpr int kAcross = 16;                     // threads along keys or output columns
constexpr int kDown = kThreads / kAcross;       // threads along queries
constexpr int kKeys = 64;                       // keys of a tile
constexpr int kKeysEach = kKeys / kAcross;      // keys of a thread
constexpr int kKeyVectors = kKeys / 4;
constexpr int kShortSequence = 32;
constexpr int kShortLanes = 8;                  // lanes of a query in the short kernel
constexpr int kShortThreads = 128;

#if defined(__HIP_PLATFORM_AMD__)
constexpr int kComputeUnits = 304;
#else
constexpr int kComputeUnits = 132;
#endif

template <int WIDTH>
struct Vector;
template <>
struct Vector<2> {
  using Type = float2;
};
template <>
struct Vector<4> {
  using Type = float4;
};

__device__ inline float4 zero4() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }

__device__ inline float dot(float4 a, float4 b, float sum) {
  sum = fmaf(a.x, b.x, sum);
  sum = fmaf(a.y, b.y, sum);
  sum = fmaf(a.z, b.z, sum);
  return fmaf(a.w, b.w, sum);
}

// DIM: head_dim rounded up. ROWS: queries of a thread.
template <int DIM, int ROWS>
__global__ __launch_bounds__(kThreads, 3) void tiled(float* out, const float* q, const float* k, const float* v,
                                                     int seq, int head_dim, float scale) {
  constexpr int kQueries = kDown * ROWS;
  constexpr int kChunk = DIM == 128 ? 64 : DIM;  // head columns of the keys in LDS
  constexpr int kDimVectors = DIM / 4;
  constexpr int kChunkVectors = kChunk / 4;
  constexpr int kEach = DIM / kAcross;           // output columns of a thread
  constexpr int kWidth = kEach % 4 == 0 ? 4 : 2;
  constexpr int kParts = kEach / kWidth;
  constexpr int kShared = kKeys * kChunkVectors > kQueries * kKeyVectors ? kKeys * kChunkVectors
                                                                         : kQueries * kKeyVectors;
  using Values = typename Vector<kWidth>::Type;
  // Rows are a multiple of 32 banks long: the low bits of the column are mixed with the row so that threads reading
  // different rows at the same column do not collide.
  __shared__ float4 queries[kQueries * kDimVectors];
  __shared__ float4 shared[kShared];             // keys, then weights

  const int thread = threadIdx.x;
  // Neighbouring threads share their keys, those two apart their queries: LDS then serves them together.
  const int across = (thread >> 1) % kAcross;
  const int down = (thread & 1) + thread / 32 * 2;
  const int key_mix = across & 7;
  const int first_query = (gridDim.y - 1 - blockIdx.y) * kQueries;  // longest first
  const size_t base = static_cast<size_t>(blockIdx.x) * seq * head_dim;
  q += base;
  k += base;
  v += base;
  out += base;

  for (int i = thread; i < kQueries * kDimVectors; i += kThreads) {
    const int row = i / kDimVectors, column = i % kDimVectors;
    float4 x = zero4();
    if (first_query + row < seq && column * 4 < head_dim) {
      x = *reinterpret_cast<const float4*>(q + static_cast<size_t>(first_query + row) * head_dim + column * 4);
    }
    queries[row * kDimVectors + (column ^ (row / ROWS & 7))] =
        make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
  }

  int columns[kParts];
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    columns[part] = min(part * kAcross * kWidth + across * kWidth, head_dim - kWidth);  // padding is never stored
  }
  float sum[ROWS][kEach];
  float peak[ROWS], mass[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    peak[i] = -INFINITY;
    mass[i] = 0.0f;
#pragma unroll
    for (int c = 0; c < kEach; ++c) sum[i][c] = 0.0f;
  }

  const int last_key = min(seq, first_query + kQueries) - 1;
  for (int first_key = 0; first_key <= last_key; first_key += kKeys) {
    float score[ROWS][kKeysEach];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
      for (int j = 0; j < kKeysEach; ++j) score[i][j] = 0.0f;
    }
#pragma unroll 1
    for (int chunk = 0; chunk < DIM; chunk += kChunk) {
      __syncthreads();
#pragma unroll
      for (int n = 0; n < kKeys * kChunkVectors / kThreads; ++n) {
        const int i = thread + n * kThreads;
        const int row = i / kChunkVectors, column = i % kChunkVectors;
        float4 x = zero4();
        if (first_key + row < seq && chunk + column * 4 < head_dim) {
          const float* key = k + static_cast<size_t>(first_key + row) * head_dim;
          x = *reinterpret_cast<const float4*>(key + chunk + column * 4);
        }
        shared[row * kChunkVectors + (column ^ (row / kKeysEach & 7))] = x;
      }
      __syncthreads();
      const float4* query_row = queries + down * ROWS * kDimVectors + chunk / 4;
      const float4* key_row = shared + across * kKeysEach * kChunkVectors;
#pragma unroll 2
      for (int column = 0; column < kChunkVectors; ++column) {
        float4 key[kKeysEach];
#pragma unroll
        for (int j = 0; j < kKeysEach; ++j) key[j] = key_row[j * kChunkVectors + (column ^ key_mix)];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
          const float4 query = query_row[i * kDimVectors + (column ^ down)];
#pragma unroll
          for (int j = 0; j < kKeysEach; ++j) score[i][j] = dot(query, key[j], score[i][j]);
        }
      }
    }

    const bool crosses = first_key + kKeys - 1 > first_query;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      if (crosses) {
        const int visible = first_query + down * ROWS + i - first_key - across * kKeysEach;
#pragma unroll
        for (int j = 0; j < kKeysEach; ++j) score[i][j] = j > visible ? -INFINITY : score[i][j];
      }
      float highest = fmaxf(fmaxf(score[i][0], score[i][1]), fmaxf(score[i][2], score[i][3]));
      highest = fmaxf(highest, __shfl_xor(highest, 2));
      highest = fmaxf(highest, __shfl_xor(highest, 4));
      highest = fmaxf(highest, __shfl_xor(highest, 8));
      highest = fmaxf(highest, __shfl_xor(highest, 16));
      highest = fmaxf(highest, peak[i]);  // finite: key 0 is visible to every query
      const float shrink = exp2f(peak[i] - highest);
      peak[i] = highest;
      float4 weight;
      weight.x = exp2f(score[i][0] - highest);
      weight.y = exp2f(score[i][1] - highest);
      weight.z = exp2f(score[i][2] - highest);
      weight.w = exp2f(score[i][3] - highest);
      mass[i] = mass[i] * shrink + ((weight.x + weight.y) + (weight.z + weight.w));
#pragma unroll
      for (int c = 0; c < kEach; ++c) sum[i][c] *= shrink;
      shared[(down * ROWS + i) * kKeyVectors + (across ^ down)] = weight;
    }
    __syncthreads();

    const int vectors = min(kKeyVectors, (last_key - first_key) / 4 + 1);
    const float4* weight_row = shared + down * ROWS * kKeyVectors;
#pragma unroll 1
    for (int vector = 0; vector < vectors; ++vector) {
      float value[4][kEach];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        // Beyond the end any value will do, its weight is zero.
        const float* row = v + static_cast<size_t>(min(first_key + vector * 4 + u, seq - 1)) * head_dim;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          *reinterpret_cast<Values*>(&value[u][part * kWidth]) = *reinterpret_cast<const Values*>(row + columns[part]);
        }
      }
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        const float4 weight = weight_row[i * kKeyVectors + (vector ^ down)];
#pragma unroll
        for (int c = 0; c < kEach; ++c) {
          float s = sum[i][c];
          s = fmaf(weight.x, value[0][c], s);
          s = fmaf(weight.y, value[1][c], s);
          s = fmaf(weight.z, value[2][c], s);
          sum[i][c] = fmaf(weight.w, value[3][c], s);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    float total = mass[i];
    total += __shfl_xor(total, 2);
    total += __shfl_xor(total, 4);
    total += __shfl_xor(total, 8);
    total += __shfl_xor(total, 16);
    const float inverse = 1.0f / total;
    const int row = first_query + down * ROWS + i;
    if (row >= seq) continue;
    float* target = out + static_cast<size_t>(row) * head_dim;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int column = part * kAcross * kWidth + across * kWidth;
      if (column >= head_dim) continue;
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sum[i][part * kWidth + c] *= inverse;
      *reinterpret_cast<Values*>(target + column) = *reinterpret_cast<const Values*>(&sum[i][part * kWidth]);
    }
  }
}

// VECTORS: float4 of the head that a lane holds.
template <int VECTORS>
__global__ __launch_bounds__(kShortThreads) void short_sequences(float* out, const float* q, const float* k,
                                                                 const float* v, int queries, int seq, int head_dim,
                                                                 float scale) {
  const int lane = threadIdx.x % kShortLanes;
  const int number = blockIdx.x * (kShortThreads / kShortLanes) + threadIdx.x / kShortLanes;
  const int row = min(number, queries - 1);  // every lane takes part in the shuffles
  const int query = row % seq;
  const size_t head = static_cast<size_t>(row - query) * head_dim;
  int columns[VECTORS];
  float4 x[VECTORS], sum[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    columns[i] = (i * kShortLanes + lane) * 4;
    sum[i] = zero4();
    x[i] = zero4();
    if (columns[i] < head_dim) {
      x[i] = *reinterpret_cast<const float4*>(q + head + static_cast<size_t>(query) * head_dim + columns[i]);
      x[i] = make_float4(x[i].x * scale, x[i].y * scale, x[i].z * scale, x[i].w * scale);
    } else {
      columns[i] = 0;  // read for nothing: the query is zero there, and the result is not stored
    }
  }
  int last = query;  // of all queries of the wave
  for (int mask = kShortLanes; mask < warpSize; mask *= 2) last = max(last, __shfl_xor(last, mask));

  float peak = -INFINITY, mass = 0.0f;
  for (int key = 0; key <= last; key += 2) {
    // An odd key out is read twice and hidden the second time.
    const float* first = k + head + static_cast<size_t>(min(key, query)) * head_dim;
    const float* second = k + head + static_cast<size_t>(min(key + 1, query)) * head_dim;
    float a = 0.0f, b = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
      a = dot(x[i], *reinterpret_cast<const float4*>(first + columns[i]), a);
      b = dot(x[i], *reinterpret_cast<const float4*>(second + columns[i]), b);
    }
#pragma unroll
    for (int mask = 1; mask < kShortLanes; mask *= 2) {
      a += __shfl_xor(a, mask);
      b += __shfl_xor(b, mask);
    }
    a = key <= query ? a : -INFINITY;
    b = key + 1 <= query ? b : -INFINITY;
    const float highest = fmaxf(peak, fmaxf(a, b));
    const float shrink = exp2f(peak - highest);
    peak = highest;
    a = exp2f(a - highest);
    b = exp2f(b - highest);
    mass = mass * shrink + (a + b);
    first += v - k;
    second += v - k;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
      const float4 y = *reinterpret_cast<const float4*>(first + columns[i]);
      const float4 z = *reinterpret_cast<const float4*>(second + columns[i]);
      sum[i].x = fmaf(b, z.x, fmaf(a, y.x, sum[i].x * shrink));
      sum[i].y = fmaf(b, z.y, fmaf(a, y.y, sum[i].y * shrink));
      sum[i].z = fmaf(b, z.z, fmaf(a, y.z, sum[i].z * shrink));
      sum[i].w = fmaf(b, z.w, fmaf(a, y.w, sum[i].w * shrink));
    }
  }
  if (number >= queries) return;
  const float inverse = 1.0f / mass;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const int column = (i * kShortLanes + lane) * 4;
    if (column >= head_dim) continue;
    *reinterpret_cast<float4*>(out + head + static_cast<size_t>(query) * head_dim + column) =
        make_float4(sum[i].x * inverse, sum[i].y * inverse, sum[i].z * inverse, sum[i].w * inverse);
  }
}

struct Problem {
  float* out;
  const float* q;
  const float* k;
  const float* v;
  int heads;  // of all batch entries
  int seq, head_dim;
  float scale;  // to the base-2 exponent
};

template <int DIM, int ROWS>
void launch_tiled(const Problem& p, hipStream_t stream) {
  const int tiles = (p.seq + kDown * ROWS - 1) / (kDown * ROWS);
  auto* kernel = tiled<DIM, ROWS>;
  kernel<<<dim3(p.heads, tiles), kThreads, 0, stream>>>(p.out, p.q, p.k, p.v, p.seq, p.head_dim, p.scale);
}

// The largest tile that still gives every compute unit two blocks.
template <int DIM>
void launch_dim(const Problem& p, hipStream_t stream) {
  const auto fills = [&](int queries) {
    return static_cast<long long>(p.heads) * ((p.seq + queries - 1) / queries) >= 2 * kComputeUnits;
  };
  if (fills(kDown * 8)) {
    launch_tiled<DIM, 8>(p, stream);
  } else if (fills(kDown * 4)) {
    launch_tiled<DIM, 4>(p, stream);
  } else {
    launch_tiled<DIM, 2>(p, stream);
  }
}

template <int VECTORS>
void launch_short(const Problem& p, hipStream_t stream) {
  constexpr int kQueries = kShortThreads / kShortLanes;
  const int queries = p.heads * p.seq;
  auto* kernel = short_sequences<VECTORS>;
  kernel<<<(queries + kQueries - 1) / kQueries, kShortThreads, 0, stream>>>(p.out, p.q, p.k, p.v, queries, p.seq,
                                                                            p.head_dim, p.scale);
}

}  // namespace

extern "C" int attention(float* out, const float* q, const float* k, const float* v, int batch, int heads, int seq,
                         int head_dim, hipStream_t stream) {
  const float scale = kLog2E / sqrtf(static_cast<float>(head_dim));
  const Problem p = {out, q, k, v, batch * heads, seq, head_dim, scale};
  if (seq <= kShortSequence) {
    if (head_dim <= 32) {
      launch_short<1>(p, stream);
    } else if (head_dim <= 64) {
      launch_short<2>(p, stream);
    } else {
      launch_short<4>(p, stream);
    }
  } else if (head_dim <= 32) {
    launch_dim<32>(p, stream);
  } else if (head_dim <= 64) {
    launch_dim<64>(p, stream);
  } else if (head_dim <= 96) {
    launch_dim<96>(p, stream);
  } else {
    launch_dim<128>(p, stream);
  }
  return hipGetLastError();
}
