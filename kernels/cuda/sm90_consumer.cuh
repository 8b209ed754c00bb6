// The consumers of a Hopper kernel: warpgroups that multiply tiles and keep maxima in registers.
#ifndef MAXSIMD_KERNELS_CUDA_SM90_CONSUMER_CUH_
#define MAXSIMD_KERNELS_CUDA_SM90_CONSUMER_CUH_

#include "kernels/cuda/sm90_block.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace maxsimd::cuda {

// A thread's maxima: value 2j + e is of column 8j + 2 * (lane % 4) + e.
template <int kN, bool kMatches>
struct Maxima {
  static constexpr int kCount = kN / 4;
  float value[kCount];
  uint32_t row[kMatches ? kCount : 1];
  float poison;  // 0, or NaN once a value of column 0 or 1 was not finite.

  __device__ void Clear() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) value[i] = -INFINITY;
    if constexpr (kMatches) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) row[i] = 0;
    }
    poison = 0;
  }
};

template <bool kMatches, int kN>
__device__ void TakeRow(const float (&c)[kN / 2], int half, uint32_t token,
                        Maxima<kN, kMatches>* maxima) {
  maxima->poison = fmaf(c[2 * half], 0.0f, maxima->poison);
#pragma unroll
  for (int i = 0; i < kN / 4; ++i) {
    const float similarity = c[i / 2 * 4 + half * 2 + i % 2];
    if constexpr (kMatches) {
      if (similarity > maxima->value[i]) {
        maxima->value[i] = similarity;
        maxima->row[i] = token;
      }
    } else {
      maxima->value[i] = fmaxf(maxima->value[i], similarity);
    }
  }
}

// The product of one tile enters the maxima; rows from `rows` on don't belong to the document.
template <bool kMatches, int kN>
__device__ void TakeTile(const float (&c)[kN / 2], uint32_t rows, uint32_t first_token,
                         Maxima<kN, kMatches>* maxima) {
  const uint32_t row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  if (!kMatches && rows >= kTileRows) {
    maxima->poison = fmaf(c[0], 0.0f, fmaf(c[2], 0.0f, maxima->poison));
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) {
      const int at = i / 2 * 4 + i % 2;
      maxima->value[i] = fmaxf(maxima->value[i], fmaxf(c[at], c[at + 2]));
    }
    return;
  }
  if (row < rows) TakeRow<kMatches, kN>(c, 0, first_token + row, maxima);
  if (row + 8 < rows) TakeRow<kMatches, kN>(c, 1, first_token + row + 8, maxima);
}

// Waits for a stage, multiplies it into c, and releases it.  `atom_bytes`: from atom to atom.
template <ElementType kType, int kN>
__device__ void MultiplyStage(const Shared& shared, RingPlace stage, uint32_t query_address,
                              uint32_t atoms, uint32_t atom_bytes, float (&c)[kN / 2]) {
  Control* const control = shared.control;
  Wait(&control->full[stage.index], stage.parity);
  const uint32_t rows = SharedAddress(shared.ring) + stage.index * kStageBytes;
  WgmmaFence();
#pragma unroll
  for (uint32_t atom = 0; atom < 2; ++atom) {
    if (atom == atoms) break;
#pragma unroll
    for (uint32_t k = 0; k < kAtomColumns / 16; ++k) {
      Wgmma<kType>(c, MatrixDescriptor(rows + atom * atom_bytes + k * 32),
                   MatrixDescriptor(query_address + atom * (kN * kAtomBytes) + k * 32),
                   atom + k != 0);
    }
  }
  WgmmaCommit();
  WgmmaWait<0>();
  ArriveOnce(&control->empty[stage.index]);
}

// One tile, all of its stages: sums of 128 elements of dim are added in float32.
template <ElementType kType, int kN>
__device__ void MultiplyTile(const Sm90Params& params, const Shared& shared, RingPlace* stage,
                             uint32_t query_address, uint32_t rows, float (&c)[kN / 2]) {
  const uint32_t atom_bytes = BoxRows(rows) * kAtomBytes;
  MultiplyStage<kType, kN>(shared, *stage, query_address, min(2u, params.atoms), atom_bytes, c);
  stage->Advance(params.stages);
  if constexpr (kN <= 64) {  // Longer queries are scored here only where one stage is all.
    for (uint32_t atom = 2; atom < params.atoms; atom += 2) {
      float more[kN / 2];
      MultiplyStage<kType, kN>(shared, *stage, query_address + atom * (kN * kAtomBytes),
                               min(2u, params.atoms - atom), atom_bytes, more);
      stage->Advance(params.stages);
#pragma unroll
      for (int i = 0; i < kN / 2; ++i) c[i] += more[i];
    }
  }
}

// Folds the upper half of the lanes' values onto the lower, and the lanes themselves: each step
// halves what a lane holds and how many lanes hold the same columns.
template <int kCount, int kLane, int kN, bool kMatches>
__device__ void Halve(Maxima<kN, kMatches>* maxima) {
  const bool upper = threadIdx.x & kLane;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const float keep = upper ? maxima->value[i + kCount / 2] : maxima->value[i];
    const float send = upper ? maxima->value[i] : maxima->value[i + kCount / 2];
    const float other = __shfl_xor_sync(~0u, send, kLane);
    if constexpr (kMatches) {
      const uint32_t keep_row = upper ? maxima->row[i + kCount / 2] : maxima->row[i];
      const uint32_t send_row = upper ? maxima->row[i] : maxima->row[i + kCount / 2];
      const uint32_t other_row = __shfl_xor_sync(~0u, send_row, kLane);
      const bool take = other > keep || (other == keep && other_row < keep_row);
      maxima->value[i] = take ? other : keep;
      maxima->row[i] = take ? other_row : keep_row;
    } else {
      maxima->value[i] = fmaxf(keep, other);
    }
  }
}

// Each warp's maxima of all columns, to shared memory.
template <int kN, bool kMatches>
__device__ void StoreWarpMaxima(Maxima<kN, kMatches>* maxima, float* to, uint32_t* rows_to,
                                uint32_t* suspicious) {
  constexpr int kCount = kN / 4;
  Halve<kCount, 16>(maxima);
  Halve<kCount / 2, 8>(maxima);
  Halve<kCount / 4, 4>(maxima);
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first = (lane >> 4 & 1) * (kCount / 2) + (lane >> 3 & 1) * (kCount / 4) +
                         (lane >> 2 & 1) * (kCount / 8);
#pragma unroll
  for (uint32_t i = 0; i < kCount / 8; ++i) {
    const uint32_t at = first + i;
    const uint32_t column = at / 2 * 8 + lane % 4 * 2 + at % 2;
    to[column] = maxima->value[i];
    if constexpr (kMatches) rows_to[column] = maxima->row[i];
  }
  const bool any = __any_sync(~0u, maxima->poison != 0);  // NaN compares unequal.
  if (lane == 0) *suspicious = any;
}

template <ElementType kType, int kN, int kGroups, bool kMatches>
__device__ void Consume(const Sm90Params& params, const Shared& shared) {
  constexpr uint32_t kWarps = kGroups * kWarpsOfGroup;
  Control* const control = shared.control;
  const uint32_t warp = threadIdx.x / 32;
  ItemReader reader;
  RingPlace stage;
  RingPlace turn;
  uint32_t tile_turn = 0;
  while (true) {
    const QueueEntry& entry = reader.Next(params, shared);
    const uint32_t rows = entry.item.rows;
    const uint32_t first_token = entry.item.first_token;
    reader.Release(shared);
    if (rows == 0) return;
    const uint32_t query_address = SharedAddress(reader.Query(params, shared));
    Maxima<kN, kMatches> maxima;
    maxima.Clear();
    for (uint32_t row = 0; row < rows; row += kTileRows, tile_turn ^= 1) {
      if (kGroups == 2 && tile_turn != warp / kWarpsOfGroup) {
        stage.Advance(params.stages);  // Of one stage: the other warpgroup's.
        continue;
      }
      float c[kN / 2];
      MultiplyTile<kType, kN>(params, shared, &stage, query_address, rows - row, c);
      TakeTile<kMatches, kN>(c, rows - row, first_token + row, &maxima);
    }
    Wait(&control->maxima_empty[turn.index], turn.parity ^ 1);
    const uint32_t place = turn.index * kWarps + warp;
    StoreWarpMaxima(&maxima, shared.maxima + place * kN, shared.rows + place * kN,
                    &control->suspicious[turn.index][warp]);
    Arrive(&control->maxima_full[turn.index]);  // Each thread for what it wrote.
    turn.Advance(2);
  }
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SM90_CONSUMER_CUH_
