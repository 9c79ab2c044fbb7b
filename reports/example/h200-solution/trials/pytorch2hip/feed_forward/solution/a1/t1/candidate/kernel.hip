#include <hip/hip_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

// Two launches: a linear layer for few tokens, with GELU at its end in the first, and one without.
//
// Large layers: each weight is read once, as float4, two steps ahead of its use; the tokens sit in LDS in pieces of some
// columns, and all tokens are accumulated in registers for each weight. Where the rows are too few to fill the device,
// several blocks share a tile of rows, each with a part of the columns; the last of them to finish adds the parts up.
//
// Small layers, which end before such blocks have started well: a block or a few of its threads take one row of weights
// and four tokens, and read everything straight from the caches.

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 8;                    // threads that share the columns of a weight row
constexpr int kGroups = kThreads / kLanes;   // such teams in a block
constexpr int kRows = 4;                     // weight rows of a team
constexpr int kTile = kGroups * kRows;       // weight rows of a block
constexpr int kStep = kLanes * 4;            // columns that a team reads at once
constexpr int kDepth = 2;                    // steps of weights in flight
constexpr int kMaxTokens = 32;
constexpr int kMaxHidden = 16384;
constexpr int kMaxTiles = (kMaxHidden + kTile - 1) / kTile;
constexpr int kMaxSplitBlocks = 1024;

#if defined(__HIP_PLATFORM_AMD__)
constexpr int kComputeUnits = 304;
#else
constexpr int kComputeUnits = 132;
#endif

// Kept between calls. The counters return to zero at the end of every launch.
__device__ alignas(16) float hidden_buffer[kMaxTokens * kMaxHidden];
__device__ alignas(16) float partial_buffer[static_cast<size_t>(kMaxSplitBlocks) * kTile * kMaxTokens];
__device__ unsigned int arrival_counters[kMaxTiles];

struct Layer {
  float* out;           // [tokens, outputs]; null stands for hidden_buffer
  const float* in;      // [tokens, inputs]; null stands for hidden_buffer
  const float* weight;  // [outputs, inputs]
  const float* bias;    // [outputs]
  int tokens, inputs, outputs;
  int split_columns;    // columns of one block, a multiple of kStep
  bool gelu;
};

template <int TOKENS>
struct Shape {
  // Columns of the tokens that sit in LDS at a time: 4 to 16 KiB, twice.
  static constexpr int kColumns = TOKENS <= 2 ? 1024 : TOKENS <= 4 ? 512 : TOKENS <= 8 ? 256 : 128;
  // Blocks that share a compute unit, as the accumulators leave room for.
  static constexpr int kBlocks = TOKENS <= 2 ? 3 : TOKENS <= 16 ? 2 : 1;
};

// What a lane reads of a step of kStep columns from `column` on, zero from `end` on. Where rows are not aligned, lanes
// take single neighbours instead of float4; tokens and weights do the same, so that the order of columns is no matter.
template <bool ALIGNED>
__device__ inline float4 load_step(const float* row, int column, int lane, int end) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (ALIGNED) {
    if (column + lane * 4 < end) v = *reinterpret_cast<const float4*>(row + column + lane * 4);
  } else {
    const float* from = row + column + lane;
    const int left = end - column - lane;
    if (left > 0) v.x = from[0];
    if (left > kLanes) v.y = from[kLanes];
    if (left > 2 * kLanes) v.z = from[2 * kLanes];
    if (left > 3 * kLanes) v.w = from[3 * kLanes];
  }
  return v;
}

__device__ inline float finish(const Layer& layer, float sum, int row) {
  const float z = sum + layer.bias[row];
  return layer.gelu ? 0.5f * z * (1.0f + erff(z * 0.70710678118654752f)) : z;
}

template <int TOKENS, bool ALIGNED>
__global__ __launch_bounds__(kThreads, Shape<TOKENS>::kBlocks) void linear(Layer layer) {
  constexpr int kColumns = Shape<TOKENS>::kColumns;
  constexpr int kVectors = kColumns / 4;
  constexpr int kStaged = TOKENS * kVectors / kThreads;
  static_assert(TOKENS * kVectors % kThreads == 0 && kColumns % (kStep * kDepth) == 0, "whole pieces");
  __shared__ float4 tokens_lds[2][TOKENS][kVectors];
  __shared__ bool is_last;

  const int thread = threadIdx.x;
  // Neighbouring threads belong to different teams: they read the same token values, which LDS serves together.
  const int lane = (thread >> 2) % kLanes;
  const int group = (thread & 3) + (thread / 32) * 4;
  const int first_row = blockIdx.x * kTile + group;
  const int begin = blockIdx.y * layer.split_columns;
  const int end = min(layer.inputs, begin + layer.split_columns);
  const float* in = layer.in ? layer.in : hidden_buffer;

  int weight[kRows];  // start of each row: at most 2^26, and half the registers of a pointer
#pragma unroll
  for (int r = 0; r < kRows; ++r) weight[r] = min(first_row + r * kGroups, layer.outputs - 1) * layer.inputs;
  float4 w[kDepth][kRows];
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      w[d][r] = load_step<ALIGNED>(layer.weight + weight[r], begin + d * kStep, lane, end);
    }
  }

  float4 staged[kStaged];
  auto fetch_tokens = [&](int column) {
#pragma unroll
    for (int i = 0; i < kStaged; ++i) {
      const int index = thread + i * kThreads;
      const int token = index / kVectors;
      staged[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (token < layer.tokens) {
        const int vector = index % kVectors;
        staged[i] = load_step<ALIGNED>(in + static_cast<size_t>(token) * layer.inputs,
                                       column + vector / kLanes * kStep, vector % kLanes, end);
      }
    }
  };
  auto store_tokens = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < kStaged; ++i) {
      const int index = thread + i * kThreads;
      tokens_lds[buffer][index / kVectors][index % kVectors] = staged[i];
    }
  };

  float sum[kRows][TOKENS];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) sum[r][t] = 0.0f;
  }
  fetch_tokens(begin);
  store_tokens(0);
  __syncthreads();

  int buffer = 0;
  for (int piece = begin; piece < end; piece += kColumns) {
    const bool more = piece + kColumns < end;
    if (more) fetch_tokens(piece + kColumns);
    const int columns = min(kColumns, end - piece);
#pragma unroll 1  // more would only spill registers
    for (int column = 0; column < columns; column += kStep * kDepth) {
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        const int position = (column + d * kStep) / 4 + lane;
#pragma unroll
        for (int t = 0; t < TOKENS; ++t) {
          const float4 v = tokens_lds[buffer][t][position];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            sum[r][t] = fmaf(w[d][r].x, v.x, sum[r][t]);
            sum[r][t] = fmaf(w[d][r].y, v.y, sum[r][t]);
            sum[r][t] = fmaf(w[d][r].z, v.z, sum[r][t]);
            sum[r][t] = fmaf(w[d][r].w, v.w, sum[r][t]);
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          w[d][r] = load_step<ALIGNED>(layer.weight + weight[r], piece + column + (d + kDepth) * kStep, lane, end);
        }
      }
    }
    buffer ^= 1;
    if (more) store_tokens(buffer);
    __syncthreads();
  }

  const int splits = gridDim.y;
  float* out = layer.out ? layer.out : hidden_buffer;
  float* partial = partial_buffer + static_cast<size_t>(blockIdx.x) * splits * TOKENS * kTile;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r * kGroups;
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
      float value = sum[r][t];
      value += __shfl_xor(value, 4);
      value += __shfl_xor(value, 8);
      value += __shfl_xor(value, 16);
      if (t % kLanes == lane) {  // the lanes of a team take turns
        if (splits > 1) {
          partial[(blockIdx.y * TOKENS + t) * kTile + group + r * kGroups] = value;
        } else if (t < layer.tokens && row < layer.outputs) {
          out[static_cast<size_t>(t) * layer.outputs + row] = finish(layer, value, row);
        }
      }
    }
  }
  if (splits == 1) return;

  __threadfence();
  __syncthreads();
  if (thread == 0) is_last = atomicAdd(&arrival_counters[blockIdx.x], 1u) + 1u == static_cast<unsigned int>(splits);
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  const float4* parts = reinterpret_cast<const float4*>(partial);
  for (int index = thread; index < layer.tokens * (kTile / 4); index += kThreads) {
    float4 total = parts[index];
#pragma unroll 8
    for (int s = 1; s < splits; ++s) {
      const float4 part = parts[s * (TOKENS * kTile / 4) + index];
      total.x += part.x;
      total.y += part.y;
      total.z += part.z;
      total.w += part.w;
    }
    const int row = blockIdx.x * kTile + index % (kTile / 4) * 4;
    float* target = out + static_cast<size_t>(index / (kTile / 4)) * layer.outputs;
    if (row < layer.outputs) target[row] = finish(layer, total.x, row);
    if (row + 1 < layer.outputs) target[row + 1] = finish(layer, total.y, row + 1);
    if (row + 2 < layer.outputs) target[row + 2] = finish(layer, total.z, row + 2);
    if (row + 3 < layer.outputs) target[row + 3] = finish(layer, total.w, row + 3);
  }
  if (thread == 0) arrival_counters[blockIdx.x] = 0;
}

constexpr int kSmallTokens = 4;
constexpr int kSmallTeam = 32;
constexpr int kSmallWork = 5 << 20;      // weights, counted for every four tokens, up to which a layer is small
constexpr int kRowsForSmallTeams = 2048; // and how many of its outputs keep the device busy with small teams

// One output feature for kSmallTokens tokens by TEAM threads: 32, whatever the wave's width, or the whole block.
template <int TEAM, bool ALIGNED>
__global__ __launch_bounds__(kThreads) void small_linear(Layer layer) {
  __shared__ float parts[kThreads / kSmallTeam][kSmallTokens];
  const int lane = threadIdx.x % TEAM;
  const int row = blockIdx.x * (kThreads / TEAM) + threadIdx.x / TEAM;
  const int first_token = blockIdx.y * kSmallTokens;
  const int inputs = layer.inputs;
  const bool active = row < layer.outputs;
  const float* weight = layer.weight + static_cast<size_t>(active ? row : 0) * inputs;
  const float* in = layer.in ? layer.in : hidden_buffer;
  const float* token[kSmallTokens];
#pragma unroll
  for (int t = 0; t < kSmallTokens; ++t) {
    token[t] = in + static_cast<size_t>(min(first_token + t, layer.tokens - 1)) * inputs;
  }
  float sum[kSmallTokens] = {};
  if (active && ALIGNED) {
#pragma unroll 4
    for (int column = lane * 4; column < inputs; column += TEAM * 4) {
      const float4 w = *reinterpret_cast<const float4*>(weight + column);
#pragma unroll
      for (int t = 0; t < kSmallTokens; ++t) {
        const float4 v = *reinterpret_cast<const float4*>(token[t] + column);
        sum[t] = fmaf(w.x, v.x, fmaf(w.y, v.y, fmaf(w.z, v.z, fmaf(w.w, v.w, sum[t]))));
      }
    }
  } else if (active) {
#pragma unroll 8
    for (int column = lane; column < inputs; column += TEAM) {
      const float w = weight[column];
#pragma unroll
      for (int t = 0; t < kSmallTokens; ++t) sum[t] = fmaf(w, token[t][column], sum[t]);
    }
  }
#pragma unroll
  for (int t = 0; t < kSmallTokens; ++t) {
#pragma unroll
    for (int distance = kSmallTeam / 2; distance > 0; distance /= 2) sum[t] += __shfl_xor(sum[t], distance);
  }
  if (TEAM > kSmallTeam) {
    if (threadIdx.x % kSmallTeam == 0) {
#pragma unroll
      for (int t = 0; t < kSmallTokens; ++t) parts[threadIdx.x / kSmallTeam][t] = sum[t];
    }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < kSmallTokens; ++t) {
      sum[t] = 0.0f;
      for (int part = 0; part < kThreads / kSmallTeam; ++part) sum[t] += parts[part][t];
    }
  }
  float* out = layer.out ? layer.out : hidden_buffer;
#pragma unroll
  for (int t = 0; t < kSmallTokens; ++t) {
    const int place = first_token + t;
    if (active && lane == t && place < layer.tokens) {
      out[static_cast<size_t>(place) * layer.outputs + row] = finish(layer, sum[t], row);
    }
  }
}

bool is_aligned(const Layer& layer) {
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(layer.in) | reinterpret_cast<uintptr_t>(layer.weight);
  return layer.inputs % 4 == 0 && addresses % 16 == 0;
}

void launch_small(const Layer& layer, hipStream_t stream) {
  const int groups = (layer.tokens + kSmallTokens - 1) / kSmallTokens;
  const bool aligned = is_aligned(layer);
  if (layer.outputs * groups >= kRowsForSmallTeams || layer.inputs <= 512) {
    constexpr int kTeams = kThreads / kSmallTeam;
    auto* kernel = aligned ? small_linear<kSmallTeam, true> : small_linear<kSmallTeam, false>;
    kernel<<<dim3((layer.outputs + kTeams - 1) / kTeams, groups), kThreads, 0, stream>>>(layer);
  } else {
    auto* kernel = aligned ? small_linear<kThreads, true> : small_linear<kThreads, false>;
    kernel<<<dim3(layer.outputs, groups), kThreads, 0, stream>>>(layer);
  }
}

// How many blocks share a tile: the choice with the shortest estimate, in steps of a block. A block costs a few
// steps to start and to end, and a little more for every part that has to be added up.
int choose_splits(int tiles, int inputs, int slots) {
  int best = 1;
  float best_cost = 0.0f;
  for (int splits = 1; splits <= 32; ++splits) {
    const int blocks = tiles * splits;
    const int steps = (inputs + kStep * splits - 1) / (kStep * splits);
    if (splits > 1 && (blocks > kMaxSplitBlocks || blocks > 2 * slots || steps < 2)) break;
    const int waves = (blocks + slots - 1) / slots;
    const float cost = static_cast<float>(waves * (steps + 6)) + (splits > 1 ? 2.0f + 0.25f * splits : 0.0f);
    if (splits == 1 || cost < best_cost) {
      best = splits;
      best_cost = cost;
    }
  }
  return best;
}

template <int TOKENS>
void launch(Layer layer, hipStream_t stream) {
  const int tiles = (layer.outputs + kTile - 1) / kTile;
  const int wanted = choose_splits(tiles, layer.inputs, kComputeUnits * Shape<TOKENS>::kBlocks);
  layer.split_columns = (layer.inputs + kStep * wanted - 1) / (kStep * wanted) * kStep;
  const int splits = (layer.inputs + layer.split_columns - 1) / layer.split_columns;
  auto* kernel = is_aligned(layer) ? linear<TOKENS, true> : linear<TOKENS, false>;
  kernel<<<dim3(tiles, splits), kThreads, 0, stream>>>(layer);
}

void launch_layer(const Layer& layer, hipStream_t stream) {
  const int groups = (layer.tokens + kSmallTokens - 1) / kSmallTokens;
  if (layer.inputs * groups <= kSmallWork / layer.outputs) {
    launch_small(layer, stream);
  } else if (layer.tokens <= 2) {
    launch<2>(layer, stream);
  } else if (layer.tokens <= 4) {
    launch<4>(layer, stream);
  } else if (layer.tokens <= 8) {
    launch<8>(layer, stream);
  } else if (layer.tokens <= 16) {
    launch<16>(layer, stream);
  } else {
    launch<32>(layer, stream);
  }
}

}  // namespace

extern "C" int feed_forward(float* y, const float* x, const float* w1, const float* b1, const float* w2,
                            const float* b2, int tokens, int d_model, int d_hidden, hipStream_t stream) {
  const Layer up = {nullptr, x, w1, b1, tokens, d_model, d_hidden, 0, true};
  const Layer down = {y, nullptr, w2, b2, tokens, d_hidden, d_model, 0, false};
  launch_layer(up, stream);
  launch_layer(down, stream);
  return hipGetLastError();
}
