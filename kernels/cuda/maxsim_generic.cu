// MaxSim on any NVIDIA GPU from sm_80 on, for every type, dim, query length and option.
//
// A block takes items of the work list: 64 document rows at a time (16 per warp, the M of mma.sync)
// against up to 64 query tokens (N).  Rows and query arrive 128 bytes of dim at a time in a ring
// that cp.async fills, swizzled as ldmatrix likes it.  Running maxima stay in registers.
//
// float32 is multiplied as pairs of TF32 (SplitTf32): high * high + high * low + low * high; what
// is left out is below 2^-20 of a product.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/finish.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_kernel.cuh"
#include "kernels/cuda/ptx.cuh"

namespace maxsimd::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kTiles = kGenericChunk / 8;  // n-tiles of mma.sync.
constexpr int kStages = 4;
constexpr uint32_t kPanelBytes = kTileRows * kAtomBytes;  // Of rows; the query's is as large.
constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kUnits = kAtomBytes / kUnitBytes;  // Of a row's share of a panel.

template <ElementType kType>
constexpr uint32_t kBytesOf = ElementBytes(kType);

static_assert(kGenericChunk == kTileRows, "the loader copies both panels alike");

struct Shared {
  std::byte ring[kStages][2][kPanelBytes];  // Rows, query.
  float maxima[kWarps][kGenericChunk];
  uint32_t rows[kWarps][kGenericChunk];
  uint32_t non_finite[kWarps];
  float scale[kTileRows];         // With normalisation: a power of two that keeps squares in range,
  float inverse_norm[kTileRows];  // and 1 / |scaled row|.
  uint32_t next_item;
  FinishState finish;
};
// While documents are combined the ring is idle and holds the maxima and rows of a whole query.
constexpr uint32_t kMaxQueryTokens = kMaxChunks * kGenericChunk;
static_assert(sizeof(Shared::ring) >= 2 * kMaxQueryTokens * sizeof(float));

__device__ uint32_t PanelOffset(uint32_t row, uint32_t unit) {
  return row * kAtomBytes + ((unit ^ (row & 7)) * kUnitBytes);
}

// Everything about the item that the phases share.
struct Task {
  const GroupParams* group;
  const std::byte* rows;   // Of the item.
  const std::byte* query;  // Of the chunk.
  uint64_t pitch;
  uint32_t row_bytes;
  uint32_t query_pitch;
  uint32_t row_count;
  int n_tiles;        // Of 8 query tokens.
  uint32_t k_panels;  // Of 128 bytes of dim.
  uint32_t first_token;
};

template <ElementType kType>
__device__ Task MakeTask(const GroupParams& group, const WorkItem& item) {
  Task task;
  task.group = &group;
  task.pitch = group.row_pitch_bytes;
  task.rows = group.rows + item.first_row * task.pitch;
  task.row_bytes = group.dim * kBytesOf<kType>;
  task.k_panels = (task.row_bytes + kAtomBytes - 1) / kAtomBytes;
  task.query_pitch = task.k_panels * kAtomBytes;
  task.query = group.query + static_cast<size_t>(item.chunk) * kGenericChunk * task.query_pitch;
  task.row_count = item.rows;
  const uint32_t tokens = min(kGenericChunk, group.query_tokens - item.chunk * kGenericChunk);
  task.n_tiles = static_cast<int>(tokens + 7) / 8;
  task.first_token = item.first_token;
  return task;
}

// Step s of the item: panel s % k_panels of tile s / k_panels.
__device__ void LoadStep(const Task& task, uint32_t tile, uint32_t panel,
                         std::byte (*stage)[kPanelBytes]) {
  const uint32_t unit = threadIdx.x % kUnits;
  const uint32_t offset = panel * kAtomBytes + unit * kUnitBytes;
  const uint32_t in_row = offset < task.row_bytes ? min(kUnitBytes, task.row_bytes - offset) : 0;
  const uint32_t rows_to = SharedAddress(stage[0]);
  const uint32_t query_to = SharedAddress(stage[1]);
#pragma unroll
  for (uint32_t i = 0; i < kTileRows * kUnits / kThreads; ++i) {
    const uint32_t row = threadIdx.x / kUnits + i * (kThreads / kUnits);
    const uint32_t to = PanelOffset(row, unit);
    const uint32_t document_row = tile * kTileRows + row;
    const uint32_t valid = document_row < task.row_count ? in_row : 0;
    const std::byte* const from =
        valid == 0 ? task.rows : task.rows + document_row * task.pitch + offset;
    if (task.pitch % kUnitBytes == 0) {
      CopyAsync16(rows_to + to, from, valid);
    } else {  // Rows of less than 16 bytes, all in unit 0.
      for (uint32_t word = 0; word < kUnitBytes; word += 4) {
        const uint32_t left = valid > word ? min(4u, valid - word) : 0;
        CopyAsync4(rows_to + to + word, left == 0 ? task.rows : from + word, left);
      }
    }
    if (row < task.n_tiles * 8) {
      CopyAsync16(query_to + to, task.query + row * task.query_pitch + offset, kUnitBytes);
    }
  }
}

template <ElementType kType>
__device__ void LoadPair(const std::byte* row, uint32_t word, uint32_t dim, float (&pair)[2]) {
  const uint32_t bits = reinterpret_cast<const uint32_t*>(row)[word];
  if constexpr (kType == ElementType::kFloat32) {
    pair[0] = __uint_as_float(bits);
    pair[1] = 0;
  } else {
    if constexpr (kType == ElementType::kFloat16) {
      const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&bits));
      pair[0] = both.x;
      pair[1] = both.y;
    } else {
      pair[0] = __uint_as_float(bits << 16);
      pair[1] = __uint_as_float(bits & 0xffff0000u);
    }
    if (word * 2 + 1 >= dim) pair[1] = 0;  // Padding, which may hold anything.
  }
}

// 2^-exponent of the row's largest magnitude, so that squares neither overflow nor vanish.
__device__ float ScaleFor(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - 127;
  return __uint_as_float(static_cast<uint32_t>(127 - max(-126, min(126, exponent))) << 23);
}

// By the warp whose rows they are.
template <ElementType kType>
__device__ void MeasureRows(const Task& task, uint32_t tile, Shared* shared) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t words = (task.row_bytes + 3) / 4;
  __syncwarp();  // The last tile's have been read.
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t row = threadIdx.x / 32 * 16 + i;
    if (tile * kTileRows + row >= task.row_count) break;
    const std::byte* const data = task.rows + (tile * kTileRows + row) * task.pitch;
    float pair[2];
    float scale = 1;
    if constexpr (kType != ElementType::kFloat16) {  // Whose squares are safe as they are.
      float largest = 0;
      for (uint32_t word = lane; word < words; word += 32) {
        LoadPair<kType>(data, word, task.group->dim, pair);
        largest = fmaxf(largest, fmaxf(fabsf(pair[0]), fabsf(pair[1])));
      }
      for (int other = 16; other > 0; other /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, other));
      }
      scale = ScaleFor(largest);
    }
    float sums[4] = {};  // Of at most 32 terms each.
    for (uint32_t word = lane, turn = 0; word < words; word += 32, ++turn) {
      LoadPair<kType>(data, word, task.group->dim, pair);
      const float a = pair[0] * scale;
      const float b = pair[1] * scale;
      const float square = fmaf(a, a, b * b);
      sums[0] += turn % 4 == 0 ? square : 0;
      sums[1] += turn % 4 == 1 ? square : 0;
      sums[2] += turn % 4 == 2 ? square : 0;
      sums[3] += turn % 4 == 3 ? square : 0;
    }
    float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (lane == 0) {
      shared->scale[row] = scale;
      shared->inverse_norm[row] = sum > 0 ? 1 / sqrtf(sum) : 0;
    }
  }
  __syncwarp();
}

// Multiplies a row fragment's elements (registers 0 and 2: first row, 1 and 3: the row 8 below).
template <ElementType kType>
__device__ void ScaleRows(uint32_t (&a)[4], float first, float second) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float scale = i % 2 == 0 ? first : second;
    if constexpr (kType == ElementType::kFloat32) {
      a[i] = __float_as_uint(__uint_as_float(a[i]) * scale);
    } else if constexpr (kType == ElementType::kBfloat16) {
      // By a power of two: exact.
      const float low = __uint_as_float(a[i] << 16) * scale;
      const float high = __uint_as_float(a[i] & 0xffff0000u) * scale;
      a[i] = __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
    }
  }
}

// c += a * b for two n-tiles of the query.
template <ElementType kType>
__device__ void Multiply(float (&c0)[4], float (&c1)[4], const uint32_t (&a)[4],
                         const uint32_t (&a_low)[4], const uint32_t (&b)[4]) {
  if constexpr (kType == ElementType::kFloat16) {
    MmaFloat16(c0, a, b[0], b[1]);
    MmaFloat16(c1, a, b[2], b[3]);
  } else if constexpr (kType == ElementType::kBfloat16) {
    MmaBfloat16(c0, a, b[0], b[1]);
    MmaBfloat16(c1, a, b[2], b[3]);
  } else {
    uint32_t high[4];
    uint32_t low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) SplitTf32(b[i], high[i], low[i]);
    MmaTf32(c0, a_low, high[0], high[1]);
    MmaTf32(c1, a_low, high[2], high[3]);
    MmaTf32(c0, a, low[0], low[1]);
    MmaTf32(c1, a, low[2], low[3]);
    MmaTf32(c0, a, high[0], high[1]);
    MmaTf32(c1, a, high[2], high[3]);
  }
}

template <ElementType kType>
__device__ void MultiplyPanel(const Task& task, const std::byte (*stage)[kPanelBytes],
                              const Shared* shared, float (&sums)[kTiles][4]) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t matrix = lane / 8;
  const uint32_t warp_row = threadIdx.x / 32 * 16;
  const uint32_t row = warp_row + (matrix & 1) * 8 + lane % 8;
  const uint32_t token = (matrix >> 1) * 8 + lane % 8;
  const bool normalize = kType != ElementType::kFloat16 && task.group->normalize;
  const float first = normalize ? shared->scale[warp_row + lane / 4] : 1;
  const float second = normalize ? shared->scale[warp_row + lane / 4 + 8] : 1;
#pragma unroll
  for (uint32_t k = 0; k < kAtomBytes / 32; ++k) {
    uint32_t a[4];
    uint32_t a_low[4] = {};
    LoadMatrices(a, SharedAddress(stage[0]) + PanelOffset(row, 2 * k + (matrix >> 1)));
    if (normalize) ScaleRows<kType>(a, first, second);
    if constexpr (kType == ElementType::kFloat32) {
#pragma unroll
      for (int i = 0; i < 4; ++i) SplitTf32(a[i], a[i], a_low[i]);
    }
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; tile += 2) {
      if (tile >= task.n_tiles) break;
      uint32_t b[4];
      LoadMatrices(b,
                   SharedAddress(stage[1]) + PanelOffset(tile * 8 + token, 2 * k + (matrix & 1)));
      Multiply<kType>(sums[tile], sums[tile + 1], a, a_low, b);
    }
  }
}

// A thread's running results: columns 2 * (lane % 4) + {0, 1} of each n-tile.
struct Maxima {
  float value[kTiles][2];
  uint32_t row[kTiles][2];
  Poison poison;
};

__device__ void ClearMaxima(Maxima* maxima) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
      maxima->value[tile][column] = -INFINITY;
      maxima->row[tile][column] = 0;
    }
  }
  maxima->poison.Clear();
}

// Of equal values the lower row stays.
__device__ void TakeLarger(float value, uint32_t row, float* best, uint32_t* best_row) {
  if (value > *best || (value == *best && row < *best_row)) {
    *best = value;
    *best_row = row;
  }
}

// The tile's similarities enter the maxima; rows behind the item's end do not.
template <ElementType kType>
__device__ void TakeTile(const Task& task, uint32_t tile, const float (&similarity)[kTiles][4],
                         const Shared* shared, Maxima* maxima) {
  const uint32_t in_tile = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t row = tile * kTileRows + in_tile + half * 8;
    if (row >= task.row_count) continue;
    const float factor = task.group->normalize ? shared->inverse_norm[in_tile + half * 8] : 1;
    const bool is_sign = task.group->normalize && task.group->dim == 1;  // Exactly: ties are ties.
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      if (n >= task.n_tiles) break;  // Behind the query's last tokens is nothing but old memory.
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        float value = similarity[n][half * 2 + column];
        maxima->poison.Watch<kType>(2 * n + column, value);
        value *= factor;
        if (is_sign) value = rintf(value);
        if (value > maxima->value[n][column]) {
          maxima->value[n][column] = value;
          maxima->row[n][column] = task.first_token + row;
        }
      }
    }
  }
}

// The block's maxima end in maxima[0] and rows[0]; returns whether any similarity was not finite.
__device__ bool ReduceMaxima(Maxima* maxima, Shared* shared) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
      float value = maxima->value[tile][column];
      uint32_t row = maxima->row[tile][column];
#pragma unroll
      for (int other = 4; other < 32; other *= 2) {
        const float other_value = __shfl_xor_sync(~0u, value, other);
        const uint32_t other_row = __shfl_xor_sync(~0u, row, other);
        TakeLarger(other_value, other_row, &value, &row);
      }
      if (lane < 4) {
        shared->maxima[warp][tile * 8 + lane * 2 + column] = value;
        shared->rows[warp][tile * 8 + lane * 2 + column] = row;
      }
    }
  }
  const bool non_finite = __any_sync(~0u, !maxima->poison.IsFinite());
  if (lane == 0) shared->non_finite[warp] = non_finite;
  __syncthreads();
  bool any = false;
  for (int w = 0; w < kWarps; ++w) any |= shared->non_finite[w] != 0;
  if (threadIdx.x < kGenericChunk) {
    float value = shared->maxima[0][threadIdx.x];
    uint32_t row = shared->rows[0][threadIdx.x];
    for (int w = 1; w < kWarps; ++w) {
      TakeLarger(shared->maxima[w][threadIdx.x], shared->rows[w][threadIdx.x], &value, &row);
    }
    shared->maxima[0][threadIdx.x] = value;
    shared->rows[0][threadIdx.x] = row;
  }
  __syncthreads();
  return any;
}

template <ElementType kType>
__device__ void FindMaxima(const Task& task, Shared* shared, Maxima* maxima) {
  constexpr uint32_t kDrainPanels = kDrainElements * 2 / kAtomBytes;  // float32: every panel.
  ClearMaxima(maxima);
  const uint32_t tiles = (task.row_count + kTileRows - 1) / kTileRows;
  const uint32_t steps = tiles * task.k_panels;
  uint32_t load_tile = 0;
  uint32_t load_panel = 0;
  const auto load_next = [&](uint32_t step) {
    if (step < steps) {
      LoadStep(task, load_tile, load_panel, shared->ring[step % kStages]);
      if (++load_panel == task.k_panels) {
        load_panel = 0;
        ++load_tile;
      }
    }
    CommitCopies();
  };
  for (uint32_t step = 0; step + 1 < kStages; ++step) load_next(step);
  float drained[kTiles][4];
  float sums[kTiles][4] = {};
  for (uint32_t step = 0, tile = 0, panel = 0; step < steps; ++step) {
    if (panel == 0) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) drained[n][i] = 0;
      }
      if (task.group->normalize) MeasureRows<kType>(task, tile, shared);
    }
    WaitCopies<kStages - 2>();
    __syncthreads();
    load_next(step + kStages - 1);
    MultiplyPanel<kType>(task, shared->ring[step % kStages], shared, sums);
    ++panel;
    if (kType == ElementType::kFloat32 || panel % kDrainPanels == 0 || panel == task.k_panels) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          drained[n][i] += sums[n][i];
          sums[n][i] = 0;
        }
      }
    }
    if (panel == task.k_panels) {
      TakeTile<kType>(task, tile, drained, shared, maxima);
      panel = 0;
      ++tile;
    }
  }
  WaitCopies<0>();
}

template <ElementType kType>
__global__ void __launch_bounds__(kThreads, kType == ElementType::kFloat32 ? 2 : 3)
    MaxSimGeneric(const __grid_constant__ LaunchParams params) {
  extern __shared__ __align__(128) std::byte shared_bytes[];
  Shared* const shared = reinterpret_cast<Shared*>(shared_bytes);
  const Team<kThreads> team{static_cast<int>(threadIdx.x)};
  AllowNextLaunch();
  const bool is_dynamic = params.item_count > gridDim.x;
  for (uint32_t index = blockIdx.x; index < params.item_count;) {
    if (is_dynamic && threadIdx.x == 0) {
      shared->next_item = gridDim.x + atomicAdd(params.counters, 1);
    }
    const WorkItem item = params.items[index];
    const GroupParams& group = GroupOf(params, item.group);
    Maxima maxima;
    FindMaxima<kType>(MakeTask<kType>(group, item), shared, &maxima);
    const bool non_finite = ReduceMaxima(&maxima, shared);  // Its barriers free the ring.
    float* const all_maxima = reinterpret_cast<float*>(shared->ring);
    uint32_t* const all_rows = reinterpret_cast<uint32_t*>(shared->ring) + kMaxQueryTokens;
    FinishItem(team, params, group, group.weights, item, item.chunk, kGenericChunk, non_finite,
               shared->maxima[0], shared->rows[0], all_maxima, all_rows, &shared->finish);
    __syncthreads();
    index = is_dynamic ? shared->next_item : params.item_count;
    __syncthreads();
  }
  if (is_dynamic && threadIdx.x == 0) LeaveCounters(params.counters);
  WaitForPreviousLaunch();
}

template <class Visit>
cudaError_t ForKernelOf(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kFloat32:
      return visit(MaxSimGeneric<ElementType::kFloat32>);
    case ElementType::kFloat16:
      return visit(MaxSimGeneric<ElementType::kFloat16>);
    case ElementType::kBfloat16:
      return visit(MaxSimGeneric<ElementType::kBfloat16>);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t PrepareGeneric() {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    const cudaError_t error = ForKernelOf(type, [](auto* kernel) {
      return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  sizeof(Shared));
    });
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t LaunchGeneric(const TileConfig& config, const LaunchParams& params, uint32_t blocks,
                          cudaStream_t stream) {
  return ForKernelOf(config.element_type, [&](auto* kernel) {
    return LaunchKernel(kernel, {blocks, kThreads, sizeof(Shared)}, config.overlaps_previous,
                        stream, params);
  });
}

}  // namespace maxsimd::cuda
