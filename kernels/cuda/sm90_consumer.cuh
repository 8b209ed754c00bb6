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
  Poison poison;

  __device__ void Clear() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) value[i] = -INFINITY;
    if constexpr (kMatches) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) row[i] = 0;
    }
    poison.Clear();
  }
};

template <ElementType kType, bool kMatches, int kN>
__device__ void TakeRow(const float (&c)[kN / 2], int half, uint32_t token,
                        Maxima<kN, kMatches>* maxima) {
#pragma unroll
  for (int i = 0; i < kN / 4; ++i) {
    const float similarity = c[i / 2 * 4 + half * 2 + i % 2];
    maxima->poison.template Watch<kType>(i, similarity);
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

// Whether a value may not be finite: products of pairs, which take half as many operations as
// looking at each.  Values beyond 1e18 may be taken for such.
template <int kCount>
__device__ bool MayBeNonFinite(const float (&c)[kCount]) {
  float sums[2] = {};
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    sums[0] = fmaf(c[i], c[i + 1], sums[0]);
    sums[1] = fmaf(c[i + 2], c[i + 3], sums[1]);
  }
  return !(fabsf(sums[0] + sums[1]) <= FLT_MAX);
}

// The product of one tile enters the maxima; rows from `rows` on don't belong to the document.
// `may_overflow`: false if it is known that no sum of finite elements can have.
template <ElementType kType, bool kMatches, int kN>
__device__ void TakeTile(const float (&c)[kN / 2], uint32_t rows, uint32_t first_token,
                         bool may_overflow, Maxima<kN, kMatches>* maxima) {
  const uint32_t row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  if (!kMatches && rows >= kTileRows) {
    if (kType == ElementType::kFloat16 || (may_overflow && (kN == 256 || MayBeNonFinite(c)))) {
#pragma unroll
      for (int i = 0; i < kN / 2; ++i)
        maxima->poison.template Watch<kType>(i / 4 * 4 + i % 2, c[i]);
    }
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) {
      const int at = i / 2 * 4 + i % 2;
      maxima->value[i] = fmaxf(maxima->value[i], fmaxf(c[at], c[at + 2]));
    }
    return;
  }
  if (row < rows) TakeRow<kType, kMatches, kN>(c, 0, first_token + row, maxima);
  if (row + 8 < rows) TakeRow<kType, kMatches, kN>(c, 1, first_token + row + 8, maxima);
}

// Of dim, what one wgmma multiplies.
constexpr uint32_t kStepBytes = 32;
constexpr uint32_t kSteps = kAtomBytes / kStepBytes;

// Two warpgroups that multiply at the same time share the tensor cores, and could end together and
// leave them idle while both take maxima.  So they multiply in turns: barrier 1 + g lets warpgroup
// g begin.  (No slower and no faster on page_images, within 1%.)
constexpr uint32_t kTurnThreads = 256;
__device__ inline void WaitForTurn(uint32_t group) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kTurnThreads) : "memory");
}
__device__ inline void PassTurn(uint32_t group) {
  asm volatile("bar.arrive %0, %1;" ::"r"(1 + (group ^ 1)), "n"(kTurnThreads) : "memory");
}

// kInTurns: the other warpgroup may begin when all but the last step is done, which lasts for as
// long as it takes to begin.
template <ElementType kType, int kN, uint32_t kAtoms, bool kInTurns>
__device__ void MultiplyAtoms(uint32_t rows, uint32_t atom_step, uint32_t query,
                              float (&c)[kN / 2]) {
  WgmmaFence();
#pragma unroll
  for (uint32_t atom = 0; atom < kAtoms; ++atom) {
#pragma unroll
    for (uint32_t k = 0; k < kSteps; ++k) {
      if (kInTurns && atom * kSteps + k + 1 == kAtoms * kSteps) WgmmaCommit();
      Wgmma<kType>(c, rows + atom * atom_step + DescriptorStep(k * kStepBytes),
                   query + DescriptorStep(atom * (kN * kAtomBytes) + k * kStepBytes),
                   atom + k != 0);
    }
  }
  WgmmaCommit();
}

// Bfloat16 elements below 2 and a query below 2^118 have sums over 128 elements below 2^126.
constexpr float kLargeQuery = 0x1p118f;
constexpr uint32_t kLargeBits = 0x40004000;  // Of a pair of elements, one of which is 2 or more.

// Whether the warp's 16 rows of a stage hold large elements.  Where many maxima are taken, this
// takes less time than looking at each similarity (README.md); its loads wait for nothing while the
// tensor cores work.
__device__ inline bool RowsAreLarge(const std::byte* stage, uint32_t atoms, uint32_t atom_bytes) {
  const std::byte* const rows = stage + threadIdx.x % 128 / 32 * (16 * kAtomBytes);
  uint32_t bits = 0;
  for (uint32_t atom = 0; atom < atoms; ++atom) {
    const uint4* const units = reinterpret_cast<const uint4*>(rows + atom * atom_bytes);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint4 unit = units[i * 32 + threadIdx.x % 32];
      bits |= unit.x | unit.y | unit.z | unit.w;
    }
  }
  return __any_sync(~0u, (bits & kLargeBits) != 0);
}

// Waits for a stage, multiplies it into c, and releases it.  `atom_bytes`: from atom to atom.
template <ElementType kType, int kN>
__device__ void MultiplyStage(const Shared& shared, RingPlace stage, uint32_t query_address,
                              uint32_t atoms, uint32_t atom_bytes, float (&c)[kN / 2],
                              bool* rows_are_large) {
  Control* const control = shared.control;
  const uint32_t rows =
      Uniform(MatrixDescriptor(SharedAddress(shared.ring) + stage.index * kStageBytes));
  const uint32_t query = Uniform(MatrixDescriptor(query_address));
  const uint32_t atom_step = Uniform(DescriptorStep(atom_bytes));
  constexpr bool kInTurns = ConsumerGroups(kType, kN) == 2;
  Wait(&control->full[stage.index], stage.parity);
  if constexpr (kInTurns) WaitForTurn(threadIdx.x / 128);
  // Each without a branch inside, which would let no product begin before the last has ended.
  if (atoms == 2) {
    MultiplyAtoms<kType, kN, 2, kInTurns>(rows, atom_step, query, c);
  } else {
    MultiplyAtoms<kType, kN, 1, kInTurns>(rows, 0, query, c);
  }
  if constexpr (kInTurns) {
    if (kType == ElementType::kBfloat16) {
      *rows_are_large = RowsAreLarge(shared.ring + stage.index * kStageBytes, atoms, atom_bytes);
    }
    WgmmaWait<1>();
    PassTurn(threadIdx.x / 128);
  }
  WgmmaWait<0>();
  ArriveOnce(&control->empty[stage.index]);
}

// One atom of a float32 tile, 32 elements of dim, is added to `sums`.  What is small is added
// first, so that nothing of it is lost beside the large.
template <int kN>
__device__ void MultiplyAtom(uint32_t (&high)[kSteps][4], uint32_t (&low)[kSteps][4],
                             uint32_t query_address, float (&sums)[kN / 2]) {
  constexpr uint32_t kPlaneBytes = kN * kAtomBytes;
  float c[kN / 2];
  const uint32_t query_high = Uniform(MatrixDescriptor(query_address));
  const uint32_t query_low = query_high + DescriptorStep(kPlaneBytes);
  SettleRegisters(high);
  SettleRegisters(low);
  WgmmaFence();
#pragma unroll
  for (uint32_t k = 0; k < kSteps; ++k) {
    WgmmaTf32(c, low[k], query_high + DescriptorStep(k * kStepBytes), k != 0);
    WgmmaTf32(c, high[k], query_low + DescriptorStep(k * kStepBytes), true);
  }
#pragma unroll
  for (uint32_t k = 0; k < kSteps; ++k) {
    WgmmaTf32(c, high[k], query_high + DescriptorStep(k * kStepBytes), true);
  }
  WgmmaCommit();
  WgmmaWait<0>();
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) sums[i] += c[i];
}

// The warp's 16 rows of an atom, split.
__device__ inline void LoadSplitRows(uint32_t atom_address, uint32_t (&high)[kSteps][4],
                                     uint32_t (&low)[kSteps][4]) {
  // ldmatrix's four matrices: rows 0-7 and 8-15 of elements 0-3, then of 4-7.
  const uint32_t matrix = threadIdx.x % 32 / 8;
  const uint32_t row = threadIdx.x % 128 / 32 * 16 + (matrix & 1) * 8 + threadIdx.x % 8;
#pragma unroll
  for (uint32_t k = 0; k < kSteps; ++k) {
    const uint32_t unit = (2 * k + (matrix >> 1)) ^ (row & 7);  // The swizzle.
    LoadMatrices(high[k], atom_address + row * kAtomBytes + unit * 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) SplitTf32(high[k][i], high[k][i], low[k][i]);
  }
}

// As MultiplyTile, for float32: sums of 32 elements of dim are added in float32.
template <int kN>
__device__ void MultiplyTileFloat32(const Sm90Params& params, const Shared& shared,
                                    RingPlace* stage, uint32_t query_address, uint32_t atom_bytes,
                                    float (&sums)[kN / 2]) {
  constexpr uint32_t kQueryAtomBytes = 2 * kN * kAtomBytes;  // Two planes.
  Control* const control = shared.control;
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) sums[i] = 0;
  for (uint32_t atom = 0; atom < params.atoms; ++atom) {
    const bool is_last_of_stage = atom % 2 == 1 || atom + 1 == params.atoms;
    if (atom % 2 == 0) Wait(&control->full[stage->index], stage->parity);
    uint32_t high[kSteps][4];
    uint32_t low[kSteps][4];
    LoadSplitRows(SharedAddress(shared.ring) + stage->index * kStageBytes + atom % 2 * atom_bytes,
                  high, low);
    if (is_last_of_stage) {
      ArriveOnce(&control->empty[stage->index]);
      stage->Advance(params.stages);
    }
    MultiplyAtom<kN>(high, low, query_address + atom * kQueryAtomBytes, sums);
  }
}

// One tile, all of its stages: sums of 128 elements of dim are added in float32.
template <ElementType kType, int kN>
__device__ void MultiplyTile(const Sm90Params& params, const Shared& shared, RingPlace* stage,
                             uint32_t query_address, uint32_t rows, float (&c)[kN / 2],
                             bool* rows_are_large) {
  const uint32_t atom_bytes = BoxRows(rows) * kAtomBytes;
  if constexpr (kType == ElementType::kFloat32) {
    return MultiplyTileFloat32<kN>(params, shared, stage, query_address, atom_bytes, c);
  }
  MultiplyStage<kType, kN>(shared, *stage, query_address, min(2u, params.atoms), atom_bytes, c,
                           rows_are_large);
  stage->Advance(params.stages);
  if constexpr (kN <= 64) {  // Longer queries are scored here only where one stage is all.
    for (uint32_t atom = 2; atom < params.atoms; atom += 2) {
      float more[kN / 2];
      MultiplyStage<kType, kN>(shared, *stage, query_address + atom * (kN * kAtomBytes),
                               min(2u, params.atoms - atom), atom_bytes, more, rows_are_large);
      stage->Advance(params.stages);
#pragma unroll
      for (int i = 0; i < kN / 2; ++i) c[i] += more[i];
    }
  }
}

__device__ inline void SkipTile(const Sm90Params& params, RingPlace* stage) {
  for (uint32_t atom = 0; atom < params.atoms; atom += 2) stage->Advance(params.stages);
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
                                uint32_t* non_finite) {
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
  const bool any = __any_sync(~0u, !maxima->poison.IsFinite());
  if (lane == 0) *non_finite = any;
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
  if (kGroups == 2 && kType != ElementType::kFloat32 && warp >= kWarpsOfGroup) PassTurn(1);
  while (true) {
    const QueueEntry& entry = reader.Next(params, shared);
    const uint32_t rows = entry.item.rows;
    const uint32_t first_token = entry.item.first_token;
    reader.Release(shared);
    if (rows == 0) return;
    const uint32_t query_address = SharedAddress(reader.Query(params, shared));
    const float* const largest = reinterpret_cast<const float*>(
        reader.Query(params, shared) + params.query_rows_bytes + kN * sizeof(float));
    const bool query_is_large = *largest >= kLargeQuery;
    Maxima<kN, kMatches> maxima;
    maxima.Clear();
    for (uint32_t row = 0; row < rows; row += kTileRows, tile_turn ^= 1) {
      if (kGroups == 2 && tile_turn != warp / kWarpsOfGroup) {
        SkipTile(params, &stage);  // The other warpgroup's.
        continue;
      }
      float c[kN / 2];
      bool rows_are_large = true;
      MultiplyTile<kType, kN>(params, shared, &stage, query_address, rows - row, c,
                              &rows_are_large);
      TakeTile<kType, kMatches, kN>(c, rows - row, first_token + row,
                                    rows_are_large || query_is_large, &maxima);
    }
    Wait(&control->maxima_empty[turn.index], turn.parity ^ 1);
    const uint32_t place = turn.index * kWarps + warp;
    StoreWarpMaxima(&maxima, shared.maxima + place * kN, shared.rows + place * kN,
                    &control->non_finite[turn.index][warp]);
    Arrive(&control->maxima_full[turn.index]);  // Each thread for what it wrote.
    turn.Advance(2);
  }
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SM90_CONSUMER_CUH_
