// From an item's maxima to a document's score: the sum over query tokens in one fixed order, the
// combination of split documents, and what makes a document non-finite.
//
// Order: lane l of one warp adds tokens l, l + 32, ... of each 256 tokens in float64, then those
// sums, then the 32 lanes' are added in float32 by halving.  It depends on the query's length
// alone, so a score has the same bits however its document was cut.
//
// Special values: a NaN or infinite element makes every product of its row NaN or infinite (also
// with a zero: 0 * infinity is NaN), so one column of each tile's product tells.  Where it does
// (`suspicious`), the document's elements are looked at themselves: a finite row's product may
// overflow as well, and that alone makes no document non-finite.
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

template <class Word>
__device__ inline bool WordIsFinite(Word word, Word exponent_mask) {
  return (word & exponent_mask) != exponent_mask;
}

__device__ inline bool ElementIsFinite(ElementType type, const std::byte* row, uint32_t k) {
  if (type == ElementType::kFloat32) {
    return WordIsFinite(reinterpret_cast<const uint32_t*>(row)[k], 0x7f800000u);
  }
  const uint16_t mask = type == ElementType::kFloat16 ? 0x7c00 : 0x7f80;
  return WordIsFinite(reinterpret_cast<const uint16_t*>(row)[k], mask);
}

// Shared memory that finishing needs beside the maxima.
struct FinishState {
  uint32_t flag;
};

// Whether rows of the document hold a NaN or an infinity; all threads of the team get the answer.
template <int kThreads>
__device__ bool AnyElementNonFinite(Team<kThreads> team, ElementType type, const GroupParams& group,
                                    uint64_t first_row, uint32_t rows, FinishState* state) {
  if (team.thread == 0) state->flag = 0;
  team.Sync();
  bool found = false;
  for (uint32_t row = 0; row < rows; ++row) {
    const std::byte* const data = group.rows + (first_row + row) * group.row_pitch_bytes;
    for (uint32_t k = team.thread; k < group.dim; k += kThreads) {
      found |= !ElementIsFinite(type, data, k);
    }
  }
  if (found) state->flag = 1;
  team.Sync();
  const bool any = state->flag != 0;
  team.Sync();
  return any;
}

__device__ inline const GroupParams& GroupOf(const LaunchParams& params, uint32_t group) {
  return params.group_count == 1 ? params.only_group : params.groups[group];
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
__device__ inline void WriteSum(const LaunchParams& params, const GroupParams& group,
                                uint32_t document, double lane_sum, int lane) {
  float sum = static_cast<float>(lane_sum);
#pragma unroll
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
  if (lane != 0) return;
  if (group.divisor != 1) sum = static_cast<float>(sum / group.divisor);
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
  WriteSum(params, group, document, sum, lane);
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
// lowest part.  Several tokens at a time: each load takes most of a microsecond.
template <int kThreads>
__device__ void CombineParts(Team<kThreads> team, const LaunchParams& params,
                             const GroupParams& group, const SplitDocument& split,
                             uint32_t chunk_tokens, float* maxima, uint32_t* rows) {
  constexpr uint32_t kAtATime = 8;
  const uint64_t part_stride = uint64_t{split.chunks} * chunk_tokens;
  // Chunks of a part lie behind each other: so do its tokens.
  const uint64_t first = uint64_t{split.first_slot} * chunk_tokens;
  for (uint32_t base = team.thread; base < group.query_tokens; base += kAtATime * kThreads) {
    float best[kAtATime];
    uint32_t best_row[kAtATime];
    for (uint32_t part = 0; part < split.parts; ++part) {
      float value[kAtATime];
#pragma unroll
      for (uint32_t i = 0; i < kAtATime; ++i) {
        const uint32_t token = base + i * kThreads;
        const uint64_t at = first + part * part_stride + token;
        value[i] = token < group.query_tokens ? __ldcg(params.partial_maxima + at) : 0;
      }
#pragma unroll
      for (uint32_t i = 0; i < kAtATime; ++i) {
        if (part != 0 && !(value[i] > best[i])) continue;
        best[i] = value[i];
        best_row[i] = 0;
        const uint32_t token = base + i * kThreads;
        if (group.return_matches && token < group.query_tokens) {
          best_row[i] = __ldcg(params.partial_rows + first + part * part_stride + token);
        }
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtATime; ++i) {
      const uint32_t token = base + i * kThreads;
      if (token >= group.query_tokens) break;
      maxima[token] = best[i];
      if (group.return_matches) rows[token] = best_row[i];
    }
  }
  team.Sync();
}

// Hands in an item of a split document; the last to arrive gets its ticket, the others 0.
template <int kThreads>
__device__ uint32_t Arrive(Team<kThreads> team, uint32_t* ticket, uint32_t items, bool suspicious,
                           FinishState* state) {
  team.Sync();
  if (team.thread == 0) {
    __threadfence();  // For the whole team: what it wrote before Sync comes before the ticket.
    const uint32_t mine = 1 + (suspicious ? 1u << kTicketItemBits : 0);
    const uint32_t arrived = atomicAdd(ticket, mine) + mine;
    const bool last = (arrived & kMaxItemsOfDocument) == items;
    state->flag = last ? arrived : 0;
    if (last) {
      *ticket = 0;
      __threadfence();
    }
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
__device__ void FinishItem(Team<kThreads> team, ElementType type, const LaunchParams& params,
                           const GroupParams& group, const float* weights, const WorkItem& item,
                           uint32_t chunk, uint32_t chunk_tokens, bool suspicious,
                           const float* maxima, const uint32_t* rows, float* all_maxima,
                           uint32_t* all_rows, FinishState* state) {
  uint64_t first_row = item.first_row;
  uint32_t length = item.rows;
  if (item.split != kNotSplit) {
    const uint64_t slot = uint64_t{item.slot} + chunk;
    for (uint32_t i = team.thread; i < chunk_tokens; i += kThreads) {
      __stcg(params.partial_maxima + slot * chunk_tokens + i, maxima[i]);
      if (group.return_matches) __stcg(params.partial_rows + slot * chunk_tokens + i, rows[i]);
    }
    const uint32_t ticket =
        Arrive(team, params.tickets + item.split, item.siblings, suspicious, state);
    if (ticket == 0) return;
    const SplitDocument split = params.splits[item.split];
    suspicious = ticket >> kTicketItemBits != 0;
    CombineParts(team, params, group, split, chunk_tokens, all_maxima, all_rows);
    maxima = all_maxima;
    rows = all_rows;
    first_row = split.first_row;
    length = split.length;
  }
  if (suspicious && AnyElementNonFinite(team, type, group, first_row, length, state)) {
    if (team.thread == 0) params.scores[item.document] = {-INFINITY, kNonFinite};
    return;
  }
  WriteDocument(team, params, group, weights, item.document, maxima, rows);
}

// The same for a chunk of 256 tokens of a document that is cut by chunks alone, without matches, by
// one warp: it leaves its lanes' sums, not its maxima, which are eight times as many.
// `chunk_weights`: the chunk's.
__device__ inline void FinishChunk(ElementType type, const LaunchParams& params,
                                   const GroupParams& group, const float* chunk_weights,
                                   const WorkItem& item, uint32_t chunk, bool suspicious,
                                   const float* maxima, FinishState* state) {
  const Team<32> team{static_cast<int>(threadIdx.x % 32)};
  double* const sums =
      reinterpret_cast<double*>(params.partial_maxima + uint64_t{item.slot} * kSumTokens);
  constexpr uint32_t kStride = kSumTokens * sizeof(float) / sizeof(double);  // Of a slot.
  const uint32_t first = chunk * kSumTokens;
  __stcg(sums + chunk * kStride + team.thread,
         LaneSum(group, chunk_weights, maxima, first, group.query_tokens - first, team.thread));
  const uint32_t ticket =
      Arrive(team, params.tickets + item.split, item.siblings, suspicious, state);
  if (ticket == 0) return;
  if (ticket >> kTicketItemBits != 0 &&
      AnyElementNonFinite(team, type, group, item.first_row, item.rows, state)) {
    if (team.thread == 0) params.scores[item.document] = {-INFINITY, kNonFinite};
    return;
  }
  double sum = 0;
#pragma unroll 4
  for (uint32_t c = 0; c < item.siblings; ++c) sum += __ldcg(sums + c * kStride + team.thread);
  WriteSum(params, group, item.document, sum, team.thread);
}

// Once per block, at its end: the last block leaves the counters at 0 for the next launch.
__device__ inline void LeaveCounters(uint32_t* counters) {
  if (atomicAdd(counters + kMaxChunks, 1) != gridDim.x - 1) return;
  for (uint32_t i = 0; i < kCounters; ++i) counters[i] = 0;
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_FINISH_CUH_
