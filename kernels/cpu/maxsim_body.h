// The kernel, written once over a small wrapper of one instruction set's vectors.
//
// Included by exactly the files compiled for one instruction set, after nothing but intrinsics and
// cpu_kernel.h.  All of it has internal linkage and nothing of std is called: an inline function
// with external linkage, compiled here for AVX-512, could be the copy that the linker keeps for
// everyone.
//
// A wrapper `Isa` has
//   kLanes, kVectors, kRows   register block: kVectors x kLanes query tokens by kRows document rows
//   kBlockRows                rows taken at a time, a multiple of kRows
//   kElementsPerUnit          1, or 2 where a lane multiplies pairs
//   Float, Index              a vector of float32, and of uint32
//   Zero Load Store Broadcast Add MulAdd Max MaxWithToken Watch AnyNan
//   Reader<format>::Read(bytes)               kLanes units
//   Reader<format>::ReadTail(bytes, elements) as many, 0 after `elements` elements
//
// Rows whose units are what memory holds are multiplied where they lie: an element is broadcast
// from there at any alignment.  Others are widened into the scratch, a block at a time.
//
// Cost: with two vectors and twelve rows one step of k is 14 loads for 24 multiply-adds, so that
// both fused multiply-add ports stay busy (they take 12 cycles, two load ports 7), and 24 sums in
// flight cover the 4 cycles' latency of each port three times. Cache: a panel's chunk is 128 x
// kVectors x kLanes units (16 KiB for AVX-512), a block's chunk of 24 rows 12 KiB, or 13.5 in the
// scratch: together in 32 KiB of L1.  Per block a panel comes from L2 once: 16 KiB for 24 rows x 2
// vectors x 128 multiply-adds, 5 bytes a cycle of the 32 that L2 gives.
#ifndef MAXSIMD_KERNELS_CPU_MAXSIM_BODY_H_
#define MAXSIMD_KERNELS_CPU_MAXSIM_BODY_H_

#include "kernels/cpu/cpu_kernel.h"

namespace maxsimd {
namespace {

enum class Format { kFloat32, kFloat16, kBfloat16 };

constexpr uint32_t FormatBytes(Format format) {
  return format == Format::kFloat32 ? 4 : 2;
}

constexpr uint32_t Min(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
constexpr uint32_t CeilDiv(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

float LoadFloat(const std::byte* from) {  // At any alignment.
  float value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <class Isa>
struct Layout {
  static constexpr uint32_t kChunkUnits = kCpuChunkElements / Isa::kElementsPerUnit;
  static constexpr uint32_t kRowStride = kChunkUnits + kCpuChunkPadding;
  static constexpr uint32_t kChunkStride = kRowStride * Isa::kBlockRows;
  static constexpr uint32_t kPanelTokens = Isa::kVectors * Isa::kLanes;
};

// Divides a row by its norm in float64: squares of float32 neither overflow nor underflow there.
// Eight partial sums in fixed order, which compilers turn into vectors.
template <class Isa>
void NormalizeRow(float* row, uint32_t dim) {
  using L = Layout<Isa>;
  double partial[8] = {};
  for (uint32_t k = 0; k < dim; k += kCpuChunkElements) {
    const float* const chunk = row + k / kCpuChunkElements * L::kChunkStride;
    const uint32_t padded = CeilDiv(Min(dim - k, kCpuChunkElements), 8) * 8;
    for (uint32_t i = 0; i < padded; i += 8) {
      for (uint32_t lane = 0; lane < 8; ++lane) {
        partial[lane] += static_cast<double>(chunk[i + lane]) * chunk[i + lane];
      }
    }
  }
  double sum = 0;
  for (const double part : partial) sum += part;
  const double inverse = sum > 0 ? 1 / __builtin_sqrt(sum) : 0;
  for (uint32_t k = 0; k < dim; k += kCpuChunkElements) {
    float* const chunk = row + k / kCpuChunkElements * L::kChunkStride;
    for (uint32_t i = 0; i < Min(dim - k, kCpuChunkElements); ++i) {
      chunk[i] = static_cast<float>(chunk[i] * inverse);
    }
  }
}

// Widens one row to units: chunk c to scratch + c * kChunkStride, 0 up to a whole vector (and to a
// multiple of 8 units, for NormalizeRow).
template <class Isa, Format format>
void ReadRow(const std::byte* bytes, uint32_t dim, bool normalize, float* scratch) {
  using L = Layout<Isa>;
  using Reader = typename Isa::template Reader<format>;
  constexpr uint32_t kStep = Isa::kLanes * Isa::kElementsPerUnit;
  for (uint32_t k = 0; k < dim; k += kCpuChunkElements) {
    float* const chunk = scratch + k / kCpuChunkElements * L::kChunkStride;
    const uint32_t elements = Min(dim - k, kCpuChunkElements);
    uint32_t i = 0;
    for (; i + kStep <= elements; i += kStep, bytes += kStep * FormatBytes(format)) {
      Isa::Store(chunk + i / Isa::kElementsPerUnit, Reader::Read(bytes));
    }
    if (i < elements) {
      Isa::Store(chunk + i / Isa::kElementsPerUnit, Reader::ReadTail(bytes, elements - i));
      i += kStep;
    }
    for (; i % 8 != 0; i += kStep) Isa::Store(chunk + i / Isa::kElementsPerUnit, Isa::Zero());
  }
  if (normalize) NormalizeRow<Isa>(scratch, dim);
}

// What is read next from memory, a little with each step: the rows of the next block while this one
// is multiplied.  They follow each other, and what follows a document's rows is most often the next
// document; an address that is nothing's does no harm.
struct Prefetch {
  uintptr_t next;  // Not a pointer: it may leave the rows.
  uint32_t step_bytes;
};

struct Tile {
  const float* query;     // Of this panel and chunk.
  const std::byte* rows;  // Of this chunk.
  size_t row_stride;      // Bytes from one row to the next.
  uint32_t units;
  float* totals;  // [kRows][vectors * lanes]: sums of the chunks before.
  bool first_chunk;
  bool last_chunk;
  float* maxima;  // Of this panel.
  uint32_t* matches;
  uint32_t first_token;
};

// kVectors x kRows sums over one chunk; then on to the totals, or with the last chunk to the
// maxima.
template <class Isa, int kVectors, int kRows>
void ScoreTile(const Tile& tile, Prefetch& prefetch, typename Isa::Float& overflow) {
  constexpr int kTokens = kVectors * Isa::kLanes;
  typename Isa::Float sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Isa::Zero();
  }
  const float* query = tile.query;
  // Three rows share an address: with one for each, there are not enough registers.
  constexpr int kGroups = (kRows + 2) / 3;
  const size_t stride = tile.row_stride;
  const std::byte* rows[kGroups];
#pragma GCC unroll 16
  for (int g = 0; g < kGroups; ++g) rows[g] = tile.rows + g * 3 * stride;
  uintptr_t next = prefetch.next;
#pragma GCC unroll 2
  for (uint32_t unit = 0; unit < tile.units; ++unit, query += kTokens) {
    __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
    next += prefetch.step_bytes;
    typename Isa::Float q[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) q[v] = Isa::Load(query + v * Isa::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const typename Isa::Float element = Isa::Broadcast(rows[r / 3] + r % 3 * stride);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Isa::MulAdd(q[v], element, sums[r][v]);
    }
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) {
      rows[g] += sizeof(float);
      __asm__("" : "+r"(rows[g]));  // So that the compiler leaves it at that.
    }
  }
  prefetch.next = next;
  float* const totals = tile.totals;
  if (!tile.first_chunk) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Isa::Add(Isa::Load(totals + r * kTokens + v * Isa::kLanes), sums[r][v]);
      }
    }
  }
  if (!tile.last_chunk) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        Isa::Store(totals + r * kTokens + v * Isa::kLanes, sums[r][v]);
      }
    }
    return;
  }
  // A sum that is infinite or NaN although all elements are finite has overflowed somewhere: what
  // it would have been is unknown, and so is whether it is the largest.
  typename Isa::Float watched = overflow;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) watched = Isa::Watch(sums[r][v], watched);
  }
  overflow = watched;
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    typename Isa::Float maximum = Isa::Load(tile.maxima + v * Isa::kLanes);
    if (tile.matches == nullptr) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) maximum = Isa::Max(sums[r][v], maximum);
    } else {
      typename Isa::Index tokens = Isa::LoadIndex(tile.matches + v * Isa::kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        Isa::MaxWithToken(sums[r][v], tile.first_token + r, maximum, tokens);
      }
      Isa::StoreIndex(tile.matches + v * Isa::kLanes, tokens);
    }
    Isa::Store(tile.maxima + v * Isa::kLanes, maximum);
  }
}

// From run-time sizes to a register block; full blocks are found first.
template <class Isa, int kVectors = Isa::kVectors, int kRows = Isa::kRows>
void ScoreTileOf(uint32_t vectors, uint32_t rows, const Tile& tile, Prefetch& prefetch,
                 typename Isa::Float& overflow) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      return ScoreTileOf<Isa, kVectors - 1, kRows>(vectors, rows, tile, prefetch, overflow);
    }
  }
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return ScoreTileOf<Isa, kVectors, kRows - 1>(vectors, rows, tile, prefetch, overflow);
    }
  }
  ScoreTile<Isa, kVectors, kRows>(tile, prefetch, overflow);
}

// Rows of one block as tiles of nearly equal size: 13 rows are 7 and 6, not 12 and 1, whose one row
// would wait for its own sums.
struct Block {
  uint32_t rows;
  uint32_t tiles;
  const std::byte* first;  // Units of the first row: in the document, or in the scratch.
  size_t row_stride;       // Bytes.
  size_t chunk_stride;     // Bytes.
};

// The block against one panel: chunk by chunk, so that a panel's chunk stays in L1 for all
// tiles of the block.
template <class Isa>
void ScorePanel(const ScoreTask& task, const float* panel, uint32_t vectors, const Block& block,
                uint32_t block_first_row, uint32_t first_query_token, float* totals,
                Prefetch prefetch, typename Isa::Float& overflow) {
  using L = Layout<Isa>;
  const uint32_t units = CeilDiv(task.dim, Isa::kElementsPerUnit);
  for (uint32_t unit = 0; unit < units; unit += L::kChunkUnits) {
    Tile tile;
    tile.query = panel + size_t{unit} * vectors * Isa::kLanes;
    tile.row_stride = block.row_stride;
    tile.units = Min(units - unit, L::kChunkUnits);
    tile.first_chunk = unit == 0;
    tile.last_chunk = unit + tile.units == units;
    tile.maxima = task.maxima + first_query_token;
    tile.matches = task.matches == nullptr ? nullptr : task.matches + first_query_token;
    uint32_t row = 0;
    for (uint32_t t = 0; t < block.tiles; ++t) {
      const uint32_t rows = CeilDiv(block.rows - row, block.tiles - t);
      tile.rows = block.first + unit / L::kChunkUnits * block.chunk_stride + row * block.row_stride;
      tile.totals = totals + row * vectors * Isa::kLanes;
      tile.first_token = task.first_token + block_first_row + row;
      ScoreTileOf<Isa>(vectors, rows, tile, prefetch, overflow);
      row += rows;
    }
  }
}

template <class Isa, Format format>
bool ScoreRows(const ScoreTask& task) {
  using L = Layout<Isa>;
  const uint32_t units = CeilDiv(task.dim, Isa::kElementsPerUnit);
  float* const scratch = task.scratch;
  float* const totals = scratch + CeilDiv(units, L::kChunkUnits) * L::kChunkStride;
  const bool in_place = FormatBytes(format) * Isa::kElementsPerUnit == sizeof(float) &&
                        task.dim % Isa::kElementsPerUnit == 0 && !task.normalize;
  uint32_t tiles_left = CeilDiv(task.row_count, Isa::kRows);
  uint32_t row = 0;
  typename Isa::Float overflow = Isa::Zero();  // NaN once a sum has overflowed.
  while (row < task.row_count) {
    Block block;
    block.tiles = Min(tiles_left, Isa::kBlockRows / Isa::kRows);
    // Its share of the rows that are left.
    block.rows = static_cast<uint32_t>(
        (uint64_t{task.row_count - row} * block.tiles + tiles_left - 1) / tiles_left);
    block.rows = Min(block.rows, block.tiles * Isa::kRows);
    const std::byte* const rows = task.rows + row * task.row_pitch_bytes;
    if (in_place) {
      block.first = rows;
      block.row_stride = task.row_pitch_bytes;
      block.chunk_stride = L::kChunkUnits * sizeof(float);
    } else {
      for (uint32_t r = 0; r < block.rows; ++r) {
        ReadRow<Isa, format>(rows + r * task.row_pitch_bytes, task.dim, task.normalize,
                             scratch + r * L::kRowStride);
      }
      block.first = reinterpret_cast<const std::byte*>(scratch);
      block.row_stride = L::kRowStride * sizeof(float);
      block.chunk_stride = L::kChunkStride * sizeof(float);
    }
    const size_t block_bytes = block.rows * task.row_pitch_bytes;
    Prefetch prefetch{reinterpret_cast<uintptr_t>(rows) + block_bytes,
                      static_cast<uint32_t>(block_bytes / (units * block.tiles))};
    const float* panel = task.packed_query;
    for (uint32_t q = 0; q < task.query_tokens; q += L::kPanelTokens) {
      const uint32_t vectors = CeilDiv(Min(task.query_tokens - q, L::kPanelTokens), Isa::kLanes);
      ScorePanel<Isa>(task, panel, vectors, block, row, q, totals, prefetch, overflow);
      prefetch.step_bytes = 0;  // The first panel has brought all of it.
      panel += size_t{units} * L::kPanelTokens;
    }
    row += block.rows;
    tiles_left -= block.tiles;
  }
  return !Isa::AnyNan(overflow);
}

template <class Isa, Format format>
void PackQuery(const PackTask& task) {
  using L = Layout<Isa>;
  const uint32_t units = CeilDiv(task.dim, Isa::kElementsPerUnit);
  float* panel = task.packed;
  for (uint32_t first = 0; first < task.tokens; first += L::kPanelTokens) {
    const uint32_t tokens = Min(task.tokens - first, L::kPanelTokens);
    const uint32_t width = CeilDiv(tokens, Isa::kLanes) * Isa::kLanes;
    for (uint32_t t = 0; t < width; ++t) {
      if (t < tokens) {
        ReadRow<Isa, format>(task.rows + size_t{first + t} * task.dim * FormatBytes(format),
                             task.dim, task.normalize, task.scratch);
      }
      for (uint32_t unit = 0; unit < units; unit += L::kChunkUnits) {
        const float* const chunk = task.scratch + unit / L::kChunkUnits * L::kChunkStride;
        float* out = panel + size_t{unit} * width + t;
        for (uint32_t i = 0; i < Min(units - unit, L::kChunkUnits); ++i, out += width) {
          *out = t < tokens ? chunk[i] : 0;
        }
      }
    }
    panel += size_t{units} * L::kPanelTokens;
  }
}

// A table entry for a wrapper that reads all three element types.
template <class Isa>
constexpr CpuArithmetic MakeArithmetic() {
  CpuArithmetic arithmetic;
  arithmetic.lanes = Isa::kLanes;
  arithmetic.vectors = Isa::kVectors;
  arithmetic.block_rows = Isa::kBlockRows;
  arithmetic.pack_query[0] = &PackQuery<Isa, Format::kFloat32>;
  arithmetic.pack_query[1] = &PackQuery<Isa, Format::kFloat16>;
  arithmetic.pack_query[2] = &PackQuery<Isa, Format::kBfloat16>;
  arithmetic.score_rows[0] = &ScoreRows<Isa, Format::kFloat32>;
  arithmetic.score_rows[1] = &ScoreRows<Isa, Format::kFloat16>;
  arithmetic.score_rows[2] = &ScoreRows<Isa, Format::kBfloat16>;
  return arithmetic;
}

}  // namespace
}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_MAXSIM_BODY_H_
