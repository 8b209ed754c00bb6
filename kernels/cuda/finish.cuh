// From an item's maxima to a document's score: the sum over query tokens in one fixed order, the
// combination of split documents, and what makes a document non-finite.
//
// Order: lane l of one warp adds tokens l, l + 32, ... of each 256 tokens in float64, then those
// sums, then the 32 lanes' are added in float32 by halving.  It depends on the query's length
// alone, so a score has the same bits however its document was cut.
//
// Special values: a NaN or infinite element makes every product of its row NaN or infinite (also
// with a zero: 0 * infinity is NaN), so for float16, whose finite products cannot overflow, one
// column of each tile's product tells.  With the other types a similarity of finite elements may
// overflow on its way, and it makes its document non-finite as well: all columns are watched
// (Poison).
#ifndef MAXSIMD_KERNELS_CUDA_FINISH_CUH_
#define MAXSIMD_KERNELS_CUDA_FINISH_CUH_

#include <cfloat>
#include <cmath>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"

namespace maxsimd::cuda {

constexpr uint32_t kScored = 0;
constexpr uint32_t kNonFinite = 2;

// The threads that finish an item together: a whole block, or one warp of it.
template <int kThreads>
struct Team {
  int thread;
  __device__ void Sync() const {
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

// Shared memory that finishing needs beside the maxima.
struct FinishState {
  uint32_t flag;
};

// Stays 0 as long as all values that it is given are finite; becomes NaN otherwise.  Two sums, so
// that each addition needn't wait for the last.
struct Poison {
  float sum[2];

  __device__ void Clear() {
#pragma unroll
    for (float& value : sum) value = 0;
  }
  // Value `index` of a thread's product, one of the first 2 of which is of column 0 or 1.
  template <ElementType kType>
  __device__ void Watch(int index, float value) {
    if (kType != ElementType::kFloat16 || index == 0) {
      sum[index % 2] = fmaf(value, 0.0f, sum[index % 2]);
    }
  }
  __device__ bool IsFinite() const {  // NaN compares unequal.
    return sum[0] + sum[1] == 0;
  }
};

__device__ inline const GroupParams& GroupOf(const LaunchParams& params, uint32_t group) {
  return params.group_count == 1 ? params.only_group : params.groups[group];
}

// What `read` takes of the group.  Where there is one group, the compiler sees that it comes with
// the launch: so no load through a pointer to either.
template <class Read>
__device__ inline auto OfGroup(const LaunchParams& params, uint32_t group, const Read& read) {
  if (params.group_count == 1) return read(params.only_group);
  return read(params.groups[group]);
}

__device__ inline float Similarity(const GroupParams& group, uint32_t token, float maximum) {
  return group.factors == nullptr ? maximum : maximum * group.factors[token];
}

constexpr uint32_t kLaneTokens = 8;
constexpr uint32_t kSumTokens = 32 * kLaneTokens;  // That are added before sums are.

// A lane's share of 256 tokens, of which `tokens` exist.
__device__ inline double LaneSum(const GroupParams& group, const float* weights,
                                 const float* maxima, uint32_t first_token, uint32_t tokens,
                                 int lane) {
  float weight[kLaneTokens];  // Fetched together: they may be in global memory.
#pragma unroll
  for (uint32_t i = 0; i < kLaneTokens; ++i) {
    weight[i] = lane + i * 32 < tokens ? weights[lane + i * 32] : 0;
  }
  double sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < kLaneTokens; ++i) {
    if (weight[i] == 0) continue;  // It contributes exactly 0, whatever the maximum.
    const uint32_t token = lane + i * 32;
    sum += double{weight[i]} * Similarity(group, first_token + token, maxima[token]);
  }
  return sum;
}

// By one warp.
__device__ inline void WriteSum(const LaunchParams& params, double divisor, uint32_t document,
                                double lane_sum, int lane) {
  float sum = static_cast<float>(lane_sum);
#pragma unroll
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
  if (lane != 0) return;
  if (divisor != 1) sum = static_cast<float>(sum / divisor);
  const bool finite = fabsf(sum) <= FLT_MAX;
  params.scores[document] = {finite ? sum + 0.0f : -INFINITY, finite ? kScored : kNonFinite};
}

// By one warp.
__device__ inline void WriteScore(const LaunchParams& params, const GroupParams& group,
                                  const float* weights, uint32_t document, const float* maxima,
                                  int lane) {
  double sum = 0;
  for (uint32_t first = 0; first < group.query_tokens; first += kSumTokens) {
    sum += LaneSum(group, weights + first, maxima + first, first, group.query_tokens - first, lane);
  }
  WriteSum(params, group.divisor, document, sum, lane);
}

// Maxima (and rows, with matches) of all query tokens, in shared memory, become the document's
// outputs.
template <int kThreads>
__device__ void WriteDocument(Team<kThreads> team, const LaunchParams& params,
                              const GroupParams& group, const float* weights, uint32_t document,
                              const float* maxima, const uint32_t* rows) {
  if (group.return_matches) {
    MatchOut* const matches =
        params.matches + group.first_match +
        static_cast<uint64_t>(document - group.first_document) * group.query_tokens;
    for (uint32_t i = team.thread; i < group.query_tokens; i += kThreads) {
      matches[i] = {rows[i], Similarity(group, i, maxima[i])};
    }
  }
  if (team.thread < 32) WriteScore(params, group, weights, document, maxima, team.thread);
}

// Of all parts, the largest maximum of each token; of equals the lowest row, which lies in the
// lowest part.  Several tokens and parts at a time: each load takes most of a microsecond.
template <int kThreads>
__device__ void CombineParts(Team<kThreads> team, const LaunchParams& params,
                             const GroupParams& group, const SplitDocument& split,
                             uint32_t chunk_tokens, float* maxima, uint32_t* rows) {
  constexpr uint32_t kTokens = 2;
  constexpr uint32_t kParts = 8;
  const uint64_t part_stride = uint64_t{split.chunks} * chunk_tokens;
  // Chunks of a part lie behind each other: so do its tokens.
  const float* const partial = params.partial_maxima + uint64_t{split.first_slot} * chunk_tokens;
  const uint32_t* const partial_rows =
      params.partial_rows + uint64_t{split.first_slot} * chunk_tokens;
  for (uint32_t base = team.thread; base < group.query_tokens; base += kTokens * kThreads) {
    float best[kTokens];
    uint32_t best_part[kTokens] = {};
#pragma unroll
    for (float& value : best) value = -INFINITY;
    for (uint32_t first = 0; first < split.parts; first += kParts) {
      float value[kParts][kTokens];
#pragma unroll
      for (uint32_t part = 0; part < kParts; ++part) {
#pragma unroll
        for (uint32_t i = 0; i < kTokens; ++i) {
          const uint32_t token = base + i * kThreads;
          const bool exists = first + part < split.parts && token < group.query_tokens;
          value[part][i] =
              exists ? __ldcg(partial + (first + part) * part_stride + token) : -INFINITY;
        }
      }
#pragma unroll
      for (uint32_t part = 0; part < kParts; ++part) {
#pragma unroll
        for (uint32_t i = 0; i < kTokens; ++i) {
          if (value[part][i] > best[i]) {
            best[i] = value[part][i];
            best_part[i] = first + part;
          }
        }
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kTokens; ++i) {
      const uint32_t token = base + i * kThreads;
      if (token >= group.query_tokens) break;
      maxima[token] = best[i];
      if (group.return_matches) {
        rows[token] = __ldcg(partial_rows + best_part[i] * part_stride + token);
      }
    }
  }
  team.Sync();
}

// Hands in an item of a split document; the last to arrive gets its ticket, the others 0.
template <int kThreads>
__device__ uint32_t Arrive(Team<kThreads> team, uint32_t* ticket, uint32_t items, bool non_finite,
                           FinishState* state) {
  team.Sync();
  if (team.thread == 0) {
    // What the whole team wrote before Sync comes before the ticket, and what the last one's team
    // reads comes after it.
    const uint32_t mine = 1 + (non_finite ? 1u << kTicketItemBits : 0);
    const uint32_t arrived = AddReleaseAcquire(ticket, mine) + mine;
    const bool last = (arrived & kMaxItemsOfDocument) == items;
    state->flag = last ? arrived : 0;
    if (last) *ticket = 0;
  }
  team.Sync();
  const uint32_t result = state->flag;
  team.Sync();
  return result;
}

// `maxima` and `rows`: [chunk_tokens], the item's, visible to the whole team.  `all_maxima` and
// `all_rows`: room for the query's tokens, used for split documents.  `weights`:
// GroupParams::weights or a copy.
template <int kThreads>
__device__ void FinishItem(Team<kThreads> team, const LaunchParams& params,
                           const GroupParams& group, const float* weights, const WorkItem& item,
                           uint32_t chunk, uint32_t chunk_tokens, bool non_finite,
                           const float* maxima, const uint32_t* rows, float* all_maxima,
                           uint32_t* all_rows, FinishState* state) {
  if (item.split != kNotSplit) {
    const uint64_t slot = uint64_t{item.slot} + chunk;
    for (uint32_t i = team.thread; i < chunk_tokens; i += kThreads) {
      __stcg(params.partial_maxima + slot * chunk_tokens + i, maxima[i]);
      if (group.return_matches) __stcg(params.partial_rows + slot * chunk_tokens + i, rows[i]);
    }
    const uint32_t ticket =
        Arrive(team, params.tickets + item.split, item.siblings, non_finite, state);
    if (ticket == 0) return;
    const SplitDocument split = params.splits[item.split];
    non_finite = ticket >> kTicketItemBits != 0;
    CombineParts(team, params, group, split, chunk_tokens, all_maxima, all_rows);
    maxima = all_maxima;
    rows = all_rows;
  }
  if (non_finite) {
    if (team.thread == 0) params.scores[item.document] = {-INFINITY, kNonFinite};
    return;
  }
  WriteDocument(team, params, group, weights, item.document, maxima, rows);
}

// The same for a chunk of 256 tokens of a document that is cut by chunks alone, without matches, by
// one warp: it leaves its lanes' sums, not its maxima, which are eight times as many.
// `chunk_weights`: the chunk's.
__device__ inline void FinishChunk(const LaunchParams& params, const GroupParams& group,
                                   const float* chunk_weights, const WorkItem& item, uint32_t chunk,
                                   bool non_finite, const float* maxima, FinishState* state) {
  const Team<32> team{static_cast<int>(threadIdx.x % 32)};
  double* const sums =
      reinterpret_cast<double*>(params.partial_maxima + uint64_t{item.slot} * kSumTokens);
  constexpr uint32_t kStride = kSumTokens * sizeof(float) / sizeof(double);  // Of a slot.
  const uint32_t first = chunk * kSumTokens;
  __stcg(sums + chunk * kStride + team.thread,
         LaneSum(group, chunk_weights, maxima, first, group.query_tokens - first, team.thread));
  const uint32_t ticket =
      Arrive(team, params.tickets + item.split, item.siblings, non_finite, state);
  if (ticket == 0) return;
  if (ticket >> kTicketItemBits != 0) {
    if (team.thread == 0) params.scores[item.document] = {-INFINITY, kNonFinite};
    return;
  }
  double sum = 0;
#pragma unroll 4
  for (uint32_t c = 0; c < item.siblings; ++c) sum += __ldcg(sums + c * kStride + team.thread);
  WriteSum(params, group.divisor, item.document, sum, team.thread);
}

// Once per block, at its end: the last block leaves the counters at 0 for the next launch.
__device__ inline void LeaveCounters(uint32_t* counters) {
  if (atomicAdd(counters + kMaxChunks, 1) != gridDim.x - 1) return;
  for (uint32_t i = 0; i < kCounters; ++i) counters[i] = 0;
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_FINISH_CUH_
