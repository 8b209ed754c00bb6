// The kernel for AMX-BF16: TDPBF16PS multiplies 16 rows by 16 query tokens over 32 elements at a
// time.
//
// bfloat16 goes in as it is.  float16 has 11 significant bits, so that it is exactly the sum of two
// bfloat16, its upper 8 bits and the rest; all four products are summed, the three small ones
// apart. float32 and normalised rows take the AVX-512 kernel: in bfloat16 parts float32 would lose
// its subnormals.
//
// Precision: one TDPBF16PS adds even and odd products in chains of 16, their sum, and that to the
// tile: so a sum over dim 4,096 has at most 16 + 1 + 128 roundings of 2^-24, 8.7e-6 of the sum of
// magnitudes, and is never drained.  float16's three small products are at most 2^-6 of that sum,
// their 400 roundings add 0.4e-6.  Subnormals (of bfloat16, and products below 2^-126) are 0.
//
// A unit is a pair of bfloat16: neighbours as bfloat16 has them in memory, so that whole tiles are
// loaded from the document itself; for float16 element i of 32 in its low half and element i + 16
// in its high half, which needs no shuffle.
#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/vector_avx512.h"

// Registers hold state across these, which calls would spill.
#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace maxsimd {
namespace {

constexpr uint32_t kTileRows = 16;
constexpr uint32_t kTileUnits = 16;  // 64 bytes: a tile's row.
constexpr uint32_t kTileElements = 2 * kTileUnits;
constexpr uint32_t kTileRowBytes = kTileElements * 2;
constexpr uint32_t kPanelVectors = 2;
constexpr uint32_t kBlockRows = 2 * kTileRows;
constexpr uint32_t kLanes = 16;
constexpr size_t kSumsUnits = size_t{kBlockRows} * kPanelVectors * kLanes;  // Of a product.

// How far ahead rows are brought into L2: two blocks of 32 x 128, so that at the 10 GB/s of one
// core a row is asked for some 1.6 us before it is needed, ten times the latency of memory.
constexpr size_t kPrefetchBytes = size_t{16} << 10;

constexpr uint32_t PartsOf(Format format) {
  return format == Format::kFloat16 ? 2 : 1;
}

// Units of a row, in whole tiles.
uint32_t UnitsOf(uint32_t dim) {
  return CeilDiv(dim, kTileElements) * kTileUnits;
}

// Two vectors of float32 to one of pairs of their upper halves.
__m512 PairUpperHalves(__m512 low, __m512 high) {
  const __m512i low_bits = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
  return _mm512_castsi512_ps(
      _mm512_mask_blend_epi16(0xaaaaaaaa, low_bits, _mm512_castps_si512(high)));
}

__m512 UpperHalf(__m512 value) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(value),
                                              _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}

// A tile's row of pairs, 0 where the mask is; the other part to the next tile.
template <Format format>
void ReadPairs(const std::byte* bytes, __mmask32 mask, float* out) {
  const __m512i halves = _mm512_maskz_loadu_epi16(mask, bytes);
  if constexpr (format == Format::kBfloat16) {
    _mm512_store_si512(out, halves);
    return;
  }
  const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
  const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
  _mm512_store_ps(out, PairUpperHalves(low, high));
  _mm512_store_ps(
      out + kTileRows * kTileUnits,
      PairUpperHalves(_mm512_sub_ps(low, UpperHalf(low)), _mm512_sub_ps(high, UpperHalf(high))));
}

// GCC 12's tile intrinsics don't tell the compiler which memory they read: without this it could
// move or drop the stores before them.
void FinishStores() {
  __asm__ volatile("" : : : "memory");
}

// Eight tiles of 16 rows by 64 bytes.
void ConfigureTiles() {
  struct {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  const void* volatile address = &config;  // So that FinishStores is about it too.
  static_assert(sizeof(config) == 64);
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = kTileRowBytes;
    config.rows[tile] = kTileRows;
  }
  FinishStores();
  _tile_loadconfig(const_cast<const void*>(address));
}

// Up to 32 rows of a document, as tiles take them: from the document itself, or from the scratch,
// where tiles lie one after another as [row tiles][tiles of a row][parts].
struct PairBlock {
  const std::byte* source = nullptr;
  size_t source_pitch = 0;
  uint32_t dim = 0;
  uint32_t rows = 0;
  bool in_place = false;
  float* scratch = nullptr;

  const std::byte* tiles = nullptr;
  size_t pitch = 0;            // Bytes from one row of a tile to the next,
  size_t tile_stride = 0;      // from one part of a tile to the next,
  size_t unit_stride = 0;      // from one tile of a row to the next,
  size_t row_tile_stride = 0;  // and from one tile of rows to the next.
};

template <Format format>
PairBlock BlockAt(const ScoreTask& task, uint32_t row, float* scratch) {
  PairBlock block;
  block.rows = row < task.row_count ? Min(task.row_count - row, kBlockRows) : 0;
  block.source = task.rows + row * task.row_pitch_bytes;
  block.source_pitch = task.row_pitch_bytes;
  block.dim = task.dim;
  block.in_place =
      format == Format::kBfloat16 && block.rows == kBlockRows && task.dim % kTileElements == 0;
  block.scratch = scratch;
  if (block.in_place) {
    block.tiles = block.source;
    block.pitch = task.row_pitch_bytes;
    block.unit_stride = kTileRowBytes;
    block.row_tile_stride = kTileRows * task.row_pitch_bytes;
  } else {
    block.tiles = reinterpret_cast<const std::byte*>(scratch);
    block.pitch = kTileRowBytes;
    block.tile_stride = kTileRows * kTileRowBytes;
    block.unit_stride = PartsOf(format) * block.tile_stride;
    block.row_tile_stride = UnitsOf(task.dim) / kTileUnits * block.unit_stride;
  }
  return block;
}

// Fills rows of one tile of the scratch.
template <Format format>
ALWAYS_INLINE void Prepare(const PairBlock& block, uint32_t row_tile, uint32_t unit,
                           uint32_t first_row = 0, uint32_t rows = kTileRows) {
  if (block.in_place) return;
  const uint32_t elements = block.dim - 2 * unit;
  const __mmask32 mask = elements >= kTileElements ? 0xffffffff : (__mmask32{1} << elements) - 1;
  const uint32_t first = row_tile * kTileRows + first_row;
  const std::byte* source = block.source + first * block.source_pitch + unit * sizeof(float);
  float* out = block.scratch + (row_tile * block.row_tile_stride +
                                unit / kTileUnits * block.unit_stride + first_row * block.pitch) /
                                   sizeof(float);
  for (uint32_t row = first; row < Min(first + rows, block.rows); ++row) {
    ReadPairs<format>(source, mask, out);
    source += block.source_pitch;
    out += kTileUnits;
  }
}

// A product's sums, [rows][2 * 16 tokens], whose maxima are still to be taken.
struct Sums {
  const float* sums = nullptr;
  uint32_t rows = 0;
  uint32_t vectors = 0;
  float* maxima = nullptr;  // Of this panel.
  uint32_t* matches = nullptr;
  uint32_t first_token = 0;
};

// What the vector unit does while the tiles multiply, a little after each instruction: few
// instructions fit into the window in which the processor looks for something to do (half of its
// 512 where the other thread of a core is busy), and a tile's takes 16 cycles.
//   - the maxima of the product before, rows in ascending order
//   - the next block, made ready in its scratch
//   - the rows after that, brought into L2
template <Format format, bool with_matches>
struct Meanwhile {
  PairBlock next;  // No rows: nothing to make ready.
  uintptr_t prefetch = 0;
  uint32_t prefetch_bytes = 0;  // With each step.

  Sums from;
  uint32_t row = 0;
  __m512 maxima[kPanelVectors];
  __m512i tokens[kPanelVectors];
  __m512 overflow[kPanelVectors];  // NaN where a sum has overflowed, as in ScoreTile.

  ALWAYS_INLINE void Begin() {
    row = 0;
    for (uint32_t v = 0; v < from.vectors; ++v) {
      maxima[v] = _mm512_load_ps(from.maxima + v * kLanes);
      if (with_matches) tokens[v] = _mm512_load_si512(from.matches + v * kLanes);
    }
  }

  ALWAYS_INLINE void TakeRows(uint32_t count) {
    for (const uint32_t end = Min(row + count, from.rows); row < end; ++row) {
      Take(0);
      if (from.vectors > 1) Take(1);
    }
  }

  // Before the sums at hand are stored: a load waits for any older store 4 KiB from it.
  ALWAYS_INLINE void End() {
    TakeRows(from.rows);
    for (uint32_t v = 0; v < from.vectors; ++v) {
      _mm512_store_ps(from.maxima + v * kLanes, maxima[v]);
      if (with_matches) _mm512_store_si512(from.matches + v * kLanes, tokens[v]);
    }
  }

  ALWAYS_INLINE void Step(uint32_t row_tile, uint32_t unit, uint32_t first_row, uint32_t rows,
                          uint32_t maxima_rows) {
    Prepare<format>(next, row_tile, unit, first_row, rows);
    TakeRows(maxima_rows);
    for (uint32_t byte = 0; byte < prefetch_bytes; byte += 64) {
      __builtin_prefetch(reinterpret_cast<const void*>(prefetch + byte), 0, 2);
    }
    prefetch += prefetch_bytes;
  }

 private:
  ALWAYS_INLINE void Take(uint32_t v) {
    const float* const at = from.sums + (row * kPanelVectors + v) * kLanes;
    __m512 sum = _mm512_load_ps(at);
    if (PartsOf(format) == 2) sum = _mm512_add_ps(sum, _mm512_load_ps(at + kSumsUnits / 2));
    overflow[v] = Avx512::Watch(sum, overflow[v]);
    if (with_matches) {
      Avx512::MaxWithToken(sum, from.first_token + row, maxima[v], tokens[v]);
    } else {
      maxima[v] = Avx512::Max(sum, maxima[v]);
    }
  }
};

struct Panel {
  const float* query;
  size_t pitch;       // Bytes from one unit to the next.
  size_t part_units;  // From one part to the next.
  uint32_t units;
  uint32_t vectors;
};

// Tiles 0 to 3 become the sums of 32 rows by 32 tokens: row tiles one after another.
template <bool with_matches>
ALWAYS_INLINE void Multiply(const PairBlock& block, uint32_t, const Panel& panel,
                            Meanwhile<Format::kBfloat16, with_matches>& meanwhile) {
  const bool two_row_tiles = block.rows > kTileRows;
  const bool two_vectors = panel.vectors > 1;
  const uint32_t maxima_rows = CeilDiv(kBlockRows, 4 * panel.units / kTileUnits);
  const std::byte* rows = block.tiles;
  const float* query = panel.query;
  for (uint32_t unit = 0; unit < panel.units; unit += kTileUnits) {
    _tile_loadd(4, rows, block.pitch);
    _tile_loadd(6, query, panel.pitch);
    _tile_dpbf16ps(0, 4, 6);
    meanwhile.Step(0, unit, 0, 8, maxima_rows);
    if (two_vectors) {
      _tile_loadd(7, query + kLanes, panel.pitch);
      _tile_dpbf16ps(1, 4, 7);
    }
    meanwhile.Step(0, unit, 8, 8, maxima_rows);
    if (two_row_tiles) {
      _tile_loadd(5, rows + block.row_tile_stride, block.pitch);
      _tile_dpbf16ps(2, 5, 6);
    }
    meanwhile.Step(1, unit, 0, 8, maxima_rows);
    if (two_row_tiles && two_vectors) _tile_dpbf16ps(3, 5, 7);
    meanwhile.Step(1, unit, 8, 8, maxima_rows);
    rows += block.unit_stride;
    query += kTileUnits * panel.pitch / sizeof(float);
  }
}

// Tiles 0 and 1 become the sums of the large products of 16 rows by 32 tokens, 2 and 3 those of the
// small ones.
template <bool with_matches>
ALWAYS_INLINE void Multiply(const PairBlock& block, uint32_t row_tile, const Panel& panel,
                            Meanwhile<Format::kFloat16, with_matches>& meanwhile) {
  const bool two_vectors = panel.vectors > 1;
  const uint32_t maxima_rows = CeilDiv(kTileRows, 4 * panel.units / kTileUnits);
  const std::byte* rows = block.tiles + row_tile * block.row_tile_stride;
  const float* query = panel.query;
  for (uint32_t unit = 0; unit < panel.units; unit += kTileUnits) {
    const auto step = [&](uint32_t i) __attribute__((always_inline)) {
      meanwhile.Step(row_tile, unit, 2 * i, 2, i % 2 == 0 ? maxima_rows : 0);
    };
    _tile_loadd(4, rows, block.pitch);
    _tile_loadd(6, query, panel.pitch);
    _tile_dpbf16ps(0, 4, 6);
    step(0);
    _tile_loadd(5, rows + block.tile_stride, block.pitch);
    _tile_dpbf16ps(2, 5, 6);
    step(1);
    _tile_loadd(7, query + panel.part_units, panel.pitch);
    _tile_dpbf16ps(2, 4, 7);
    step(2);
    _tile_dpbf16ps(2, 5, 7);
    step(3);
    if (two_vectors) {
      _tile_loadd(6, query + kLanes, panel.pitch);
      _tile_dpbf16ps(1, 4, 6);
    }
    step(4);
    if (two_vectors) _tile_dpbf16ps(3, 5, 6);
    step(5);
    if (two_vectors) {
      _tile_loadd(7, query + panel.part_units + kLanes, panel.pitch);
      _tile_dpbf16ps(3, 4, 7);
    }
    step(6);
    if (two_vectors) _tile_dpbf16ps(3, 5, 7);
    step(7);
    rows += block.unit_stride;
    query += kTileUnits * panel.pitch / sizeof(float);
  }
}

void ZeroSums() {
  FinishStores();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Tiles 0 and 1 to sums[16][2 * 16 tokens], then 2 and 3.
void StoreSums(uint32_t vectors, float* sums) {
  constexpr size_t kPitch = kPanelVectors * kLanes * sizeof(float);
  float* const second = sums + kSumsUnits / 2;
  _tile_stored(0, sums, kPitch);
  _tile_stored(2, second, kPitch);
  if (vectors == 1) return;
  _tile_stored(1, sums + kLanes, kPitch);
  _tile_stored(3, second + kLanes, kPitch);
}

template <Format format, bool with_matches>
bool ScoreTiles(const ScoreTask& task) {
  const uint32_t units = UnitsOf(task.dim);
  constexpr uint32_t kParts = PartsOf(format);
  constexpr uint32_t kProductRows = kBlockRows / kParts;
  constexpr uint32_t kStepsPerTile = 4 * kParts * kParts;
  const size_t block_units = size_t{kParts} * kBlockRows * units;
  float* const scratch[2] = {task.scratch, task.scratch + block_units};
  float* const sums = task.scratch + 2 * block_units;
  uint32_t products = 0;
  ConfigureTiles();
  Meanwhile<format, with_matches> meanwhile;
  for (uint32_t v = 0; v < kPanelVectors; ++v) meanwhile.overflow[v] = Avx512::Zero();
  PairBlock block = BlockAt<format>(task, 0, scratch[0]);
  for (uint32_t unit = 0; unit < units; unit += kTileUnits) {
    Prepare<format>(block, 0, unit);
    Prepare<format>(block, 1, unit);
  }
  for (uint32_t row = 0; row < task.row_count; row += kBlockRows) {
    const PairBlock next =
        BlockAt<format>(task, row + kBlockRows, scratch[(row / kBlockRows + 1) % 2]);
    meanwhile.next = next;
    meanwhile.prefetch = reinterpret_cast<uintptr_t>(block.source) + kPrefetchBytes;
    meanwhile.prefetch_bytes = static_cast<uint32_t>(block.rows * task.row_pitch_bytes /
                                                     (kStepsPerTile * units / kTileUnits));
    const float* query = task.packed_query;
    for (uint32_t q = 0; q < task.query_tokens; q += kPanelVectors * kLanes) {
      const uint32_t vectors = CeilDiv(Min(task.query_tokens - q, kPanelVectors * kLanes), kLanes);
      const Panel panel = {
          .query = query,
          .pitch = vectors * kLanes * sizeof(float),
          .part_units = size_t{units} * vectors * kLanes,
          .units = units,
          .vectors = vectors,
      };
      for (uint32_t first = 0; first < block.rows; first += kProductRows) {
        ZeroSums();
        meanwhile.Begin();
        Multiply(block, first / kTileRows, panel, meanwhile);
        meanwhile.End();
        float* const product_sums = sums + products++ % 2 * kSumsUnits;
        StoreSums(vectors, product_sums);
        meanwhile.from = {
            .sums = product_sums,
            .rows = Min(block.rows - first, kProductRows),
            .vectors = vectors,
            .maxima = task.maxima + q,
            .matches = task.matches == nullptr ? nullptr : task.matches + q,
            .first_token = task.first_token + row + first,
        };
      }
      meanwhile.next = {};  // The first panel has done all of it.
      meanwhile.prefetch_bytes = 0;
      query += size_t{kParts} * units * kPanelVectors * kLanes;
    }
    block = next;
  }
  meanwhile.Begin();
  meanwhile.End();
  _tile_release();
  return !Avx512::AnyNan(_mm512_add_ps(meanwhile.overflow[0], meanwhile.overflow[1]));
}

template <Format format>
bool ScoreRowsByTiles(const ScoreTask& task) {
  return task.matches == nullptr ? ScoreTiles<format, false>(task) : ScoreTiles<format, true>(task);
}

// [panels][parts][units][vectors * lanes].
template <Format format>
void PackPairs(const PackTask& task) {
  const uint32_t units = UnitsOf(task.dim);
  float* panel = task.packed;
  ScoreTask row;
  row.rows = task.rows;
  row.row_pitch_bytes = task.dim * FormatBytes(format);
  row.row_count = 1;
  row.dim = task.dim;
  for (uint32_t first = 0; first < task.tokens; first += kPanelVectors * kLanes) {
    const uint32_t tokens = Min(task.tokens - first, kPanelVectors * kLanes);
    const uint32_t width = CeilDiv(tokens, kLanes) * kLanes;
    for (uint32_t t = 0; t < width; ++t, row.rows += row.row_pitch_bytes) {
      const PairBlock block = BlockAt<format>(row, 0, task.scratch);
      for (uint32_t unit = 0; unit < units; ++unit) {
        if (t < tokens && unit % kTileUnits == 0) Prepare<format>(block, 0, unit);
        for (uint32_t part = 0; part < PartsOf(format); ++part) {
          const size_t at =
              (unit / kTileUnits * block.unit_stride + part * block.tile_stride) / sizeof(float);
          // Bits, not a number: but a copy of a float keeps them.
          panel[(size_t{part} * units + unit) * width + t] =
              t < tokens ? task.scratch[at + unit % kTileUnits] : 0;
        }
      }
    }
    panel += size_t{PartsOf(format)} * units * kPanelVectors * kLanes;
  }
}

template <Format format>
constexpr CpuArithmetic MakeTileArithmetic() {
  CpuArithmetic arithmetic;
  arithmetic.lanes = kLanes;
  arithmetic.vectors = kPanelVectors;
  arithmetic.block_rows = kBlockRows;
  arithmetic.elements_per_unit = 2;
  arithmetic.tile_units = kTileUnits;
  arithmetic.parts = PartsOf(format);
  arithmetic.can_normalize = false;
  arithmetic.pack_query[static_cast<int>(format)] = &PackPairs<format>;
  arithmetic.score_rows[static_cast<int>(format)] = &ScoreRowsByTiles<format>;
  return arithmetic;
}

constexpr CpuArithmetic kBfloat16Arithmetic = MakeTileArithmetic<Format::kBfloat16>();
constexpr CpuArithmetic kFloat16Arithmetic = MakeTileArithmetic<Format::kFloat16>();
constexpr CpuArithmetic kArithmetic = MakeArithmetic<Avx512>();

}  // namespace

const CpuKernel kAmxBf16Kernel = {"amx_bf16",
                                  {&kBfloat16Arithmetic, &kFloat16Arithmetic, &kArithmetic}};

}  // namespace maxsimd
