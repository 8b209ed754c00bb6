// The finisher of a Hopper kernel: one warp that turns an item's maxima into a score, or into a
// part of one, while the consumers go on.
#ifndef MAXSIMD_KERNELS_CUDA_SM90_FINISHER_CUH_
#define MAXSIMD_KERNELS_CUDA_SM90_FINISHER_CUH_

#include "kernels/cuda/sm90_block.cuh"

namespace maxsimd::cuda {

// A column's maximum over the warps, and its row with matches.
template <int kN, int kWarps, bool kMatches>
__device__ float CombineWarps(uint32_t column, const float* maxima, const uint32_t* rows,
                              uint32_t* row) {
  float value = maxima[column];
  if constexpr (kMatches) *row = rows[column];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) {
    const float other = maxima[warp * kN + column];
    if constexpr (kMatches) {
      const uint32_t other_row = rows[warp * kN + column];
      if (other > value || (other == value && other_row < *row)) *row = other_row;
    }
    value = fmaxf(value, other);
  }
  return value;
}

// What the finisher keeps of a group while its documents come.
template <int kN>
struct FinishedGroup {
  float weight[kN / 32];  // The lane's tokens: lane, lane + 32, ...
  double divisor;
  uint64_t first_match;
  uint32_t first_document;
  uint32_t query_tokens;

  __device__ void Load(const LaunchParams& params, uint32_t group, const float* weights) {
#pragma unroll
    for (int i = 0; i < kN / 32; ++i) weight[i] = weights[threadIdx.x % 32 + i * 32];
    OfGroup(params, group, [this](const GroupParams& from) {
      divisor = from.divisor;
      first_match = from.first_match;
      first_document = from.first_document;
      query_tokens = from.query_tokens;
    });
  }
};

// A document that was one item: all there is of it is in the warps' maxima.
template <int kN, int kWarps, bool kMatches>
__device__ void FinishWhole(const LaunchParams& params, const FinishedGroup<kN>& group,
                            uint32_t document, bool non_finite, const float* maxima,
                            const uint32_t* rows) {
  const uint32_t lane = threadIdx.x % 32;
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kN / 32; ++i) {
    const uint32_t token = lane + i * 32;
    uint32_t row = 0;
    const float maximum = CombineWarps<kN, kWarps, kMatches>(token, maxima, rows, &row);
    sum += double{group.weight[i]} * maximum;
    if (kMatches && !non_finite && token < group.query_tokens) {
      const uint64_t first = uint64_t{document - group.first_document} * group.query_tokens;
      params.matches[group.first_match + first + token] = {row, maximum};
    }
  }
  if (!non_finite) return WriteSum(params, group.divisor, document, sum, static_cast<int>(lane));
  if (lane == 0) params.scores[document] = {-INFINITY, kNonFinite};
}

// An item of a document that has several.
template <int kN, int kWarps, bool kMatches>
__device__ void FinishPart(const Sm90Params& params, const Shared& shared, const WorkItem& item,
                           const float* chunk_weights, bool non_finite, float* maxima,
                           uint32_t* rows) {
  const Team<32> team{static_cast<int>(threadIdx.x % 32)};
  const GroupParams& group = GroupOf(params.launch, item.group);
  for (uint32_t i = team.thread; i < kN; i += 32) {  // In the first warp's place.
    uint32_t row;
    maxima[i] = CombineWarps<kN, kWarps, kMatches>(i, maxima, rows, &row);
    if (kMatches) rows[i] = row;
  }
  if (kN == kSumTokens && params.chunks > 1 && item.siblings == params.chunks) {
    FinishChunk(params.launch, group, chunk_weights, item, BlockChunk(params), non_finite, maxima,
                &shared.control->finish);
  } else {
    FinishItem(team, params.launch, group, params.chunks > 1 ? group.weights : chunk_weights, item,
               BlockChunk(params), kN, non_finite, maxima, rows, shared.all_maxima, shared.all_rows,
               &shared.control->finish);
  }
}

template <int kN, int kGroups, bool kMatches>
__device__ void Finish(const Sm90Params& params, const Shared& shared) {
  constexpr int kWarps = kGroups * kWarpsOfGroup;
  Control* const control = shared.control;
  const uint32_t lane = threadIdx.x % 32;
  ItemReader reader;
  RingPlace turn;
  FinishedGroup<kN> group;
  while (true) {
    const QueueEntry entry = reader.Next(params, shared);
    const WorkItem& item = entry.item;
    if (item.rows == 0) return;
    const float* const weights =
        reinterpret_cast<const float*>(reader.Query(params, shared) + params.query_rows_bytes);
    if (entry.new_query) group.Load(params.launch, item.group, weights);
    Wait(&control->maxima_full[turn.index], turn.parity);
    float* const maxima = shared.maxima + turn.index * kWarps * kN;
    uint32_t* const rows = shared.rows + turn.index * kWarps * kN;
    const bool non_finite = __any_sync(~0u, control->non_finite[turn.index][lane % kWarps] != 0);
    if (item.split == kNotSplit) {
      FinishWhole<kN, kWarps, kMatches>(params.launch, group, item.document, non_finite, maxima,
                                        rows);
    } else {
      FinishPart<kN, kWarps, kMatches>(params, shared, item, weights, non_finite, maxima, rows);
    }
    Arrive(&control->maxima_empty[turn.index]);  // Each thread for what it read.
    turn.Advance(2);
    reader.Release(shared);
  }
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SM90_FINISHER_CUH_
