// The finisher of a Hopper kernel: one warp that turns an item's maxima into a score, or into a
// part of one, while the consumers go on.
#ifndef MAXSIMD_KERNELS_CUDA_SM90_FINISHER_CUH_
#define MAXSIMD_KERNELS_CUDA_SM90_FINISHER_CUH_

#include "kernels/cuda/sm90_block.cuh"

namespace maxsimd::cuda {

// The warps' maxima become those of the item, in the first warp's place.
template <int kN, int kWarps, bool kMatches>
__device__ void CombineWarps(uint32_t column, float* maxima, uint32_t* rows) {
  float value = maxima[column];
  uint32_t row = kMatches ? rows[column] : 0;
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) {
    const float other = maxima[warp * kN + column];
    if constexpr (kMatches) {
      const uint32_t other_row = rows[warp * kN + column];
      if (other > value || (other == value && other_row < row)) row = other_row;
    }
    value = fmaxf(value, other);
  }
  maxima[column] = value;
  if constexpr (kMatches) rows[column] = row;
}

template <ElementType kType, int kN, int kGroups, bool kMatches>
__device__ void Finish(const Sm90Params& params, const Shared& shared) {
  constexpr int kWarps = kGroups * kWarpsOfGroup;
  Control* const control = shared.control;
  const Team<32> team{static_cast<int>(threadIdx.x % 32)};
  ItemReader reader;
  RingPlace turn;
  while (true) {
    const WorkItem item = reader.Next(params, shared).item;
    if (item.rows == 0) return;
    const GroupParams& group = GroupOf(params.launch, item.group);
    Wait(&control->maxima_full[turn.index], turn.parity);
    float* const maxima = shared.maxima + turn.index * kWarps * kN;
    uint32_t* const rows = shared.rows + turn.index * kWarps * kN;
    for (uint32_t i = team.thread; i < kN; i += 32) {
      CombineWarps<kN, kWarps, kMatches>(i, maxima, rows);
    }
    const bool suspicious = __any_sync(
        ~0u, team.thread < kWarps && control->suspicious[turn.index][team.thread % kWarps] != 0);
    const float* const chunk_weights =
        reinterpret_cast<const float*>(reader.Query(params, shared) + params.query_rows_bytes);
    if (kN == kSumTokens && params.chunks > 1 && item.siblings == params.chunks) {
      FinishChunk(kType, params.launch, group, chunk_weights, item, BlockChunk(params), suspicious,
                  maxima, &control->finish);
    } else {
      FinishItem(team, kType, params.launch, group,
                 params.chunks > 1 ? group.weights : chunk_weights, item, BlockChunk(params), kN,
                 suspicious, maxima, rows, shared.all_maxima, shared.all_rows, &control->finish);
    }
    Arrive(&control->maxima_empty[turn.index]);
    turn.Advance(2);
    reader.Release(shared);
  }
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SM90_FINISHER_CUH_
