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
// A unit is a pair of bfloat16, element i of 32 in its low half and element i + 16 in its high
// half: any pairing does that the query has too, and this one needs no shuffle.
#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/vector_avx512.h"

namespace maxsimd {
namespace {

constexpr uint32_t kTileRows = 16;
constexpr uint32_t kTileUnits = 16;  // 64 bytes: a tile's row.
constexpr uint32_t kTileElements = 2 * kTileUnits;
constexpr uint32_t kPanelVectors = 2;
constexpr uint32_t kBlockRows = 2 * kTileRows;
constexpr uint32_t kLanes = 16;

constexpr uint32_t PartsOf(Format format) {
  return format == Format::kFloat16 ? 2 : 1;
}

struct Shape {
  uint32_t units;  // Of a row, whole tiles.
  uint32_t
      row_stride;  // Of the scratch, in units: one line more, so that rows differ in cache set.
};

Shape ShapeOf(uint32_t dim) {
  const uint32_t units = CeilDiv(dim, kTileElements) * kTileUnits;
  return {units, units + kCpuChunkPadding};
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

// One row to pairs, 0 beyond its dim: the parts row_stride * kBlockRows units apart.
template <Format format>
void ReadPairs(const std::byte* bytes, uint32_t dim, const Shape& shape, float* scratch,
               __m512& poison) {
  using Reader = Avx512::Reader<format>;
  __m512 row_poison = Avx512::Clean();
  for (uint32_t k = 0; k < dim; k += kTileElements) {
    const uint32_t elements = Min(dim - k, kTileElements);
    __m512 low;
    __m512 high = _mm512_setzero_ps();
    if (elements == kTileElements) {
      low = Reader::Read(bytes, row_poison);
      high = Reader::Read(bytes + kLanes * FormatBytes(format), row_poison);
    } else {
      low = Reader::ReadTail(bytes, Min(elements, kLanes), row_poison);
      if (elements > kLanes) {
        high =
            Reader::ReadTail(bytes + kLanes * FormatBytes(format), elements - kLanes, row_poison);
      }
    }
    bytes += kTileElements * FormatBytes(format);
    float* const out = scratch + k / 2;
    _mm512_store_ps(out, PairUpperHalves(low, high));
    if constexpr (PartsOf(format) == 2) {
      const __m512 low_rest = _mm512_sub_ps(low, UpperHalf(low));
      const __m512 high_rest = _mm512_sub_ps(high, UpperHalf(high));
      _mm512_store_ps(out + shape.row_stride * kBlockRows, PairUpperHalves(low_rest, high_rest));
    }
  }
  poison = Avx512::Merge(poison, row_poison);
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
    config.row_bytes[tile] = 64;
    config.rows[tile] = kTileRows;
  }
  FinishStores();
  _tile_loadconfig(const_cast<const void*>(address));
}

struct Product {
  const float* rows;  // Scratch of the block's first row.
  size_t row_bytes;
  size_t row_part_units;  // From one part of the rows to the next.
  const float* query;     // The panel.
  size_t query_bytes;     // From one unit of the panel to the next.
  size_t query_part_units;
  uint32_t units;
  uint32_t vectors;
  uint32_t rows_count;
};

// sums[32 rows][vectors * 16 tokens]; rows and tokens in tiles of 16, at most two by two.
void MultiplyBfloat16(const Product& p, float* sums) {
  const bool two_row_tiles = p.rows_count > kTileRows;
  const bool two_vectors = p.vectors > 1;
  const float* const lower_rows = p.rows + kTileRows * p.row_bytes / sizeof(float);
  FinishStores();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (uint32_t unit = 0; unit < p.units; unit += kTileUnits) {
    const float* const query = p.query + unit * p.query_bytes / sizeof(float);
    _tile_loadd(4, p.rows + unit, p.row_bytes);
    _tile_loadd(6, query, p.query_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (two_vectors) {
      _tile_loadd(7, query + kLanes, p.query_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (!two_row_tiles) continue;
    _tile_loadd(5, lower_rows + unit, p.row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    if (two_vectors) _tile_dpbf16ps(3, 5, 7);
  }
  float* const lower_sums = sums + kTileRows * p.query_bytes / sizeof(float);
  _tile_stored(0, sums, p.query_bytes);
  if (two_vectors) _tile_stored(1, sums + kLanes, p.query_bytes);
  if (!two_row_tiles) return;
  _tile_stored(2, lower_sums, p.query_bytes);
  if (two_vectors) _tile_stored(3, lower_sums + kLanes, p.query_bytes);
}

// The same for one tile of rows in two parts; the small products go to small_sums.
void MultiplyFloat16(const Product& p, float* sums, float* small_sums) {
  const bool two_vectors = p.vectors > 1;
  FinishStores();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (uint32_t unit = 0; unit < p.units; unit += kTileUnits) {
    const float* const query = p.query + unit * p.query_bytes / sizeof(float);
    _tile_loadd(4, p.rows + unit, p.row_bytes);
    _tile_loadd(5, p.rows + p.row_part_units + unit, p.row_bytes);
    _tile_loadd(6, query, p.query_bytes);
    _tile_loadd(7, query + p.query_part_units, p.query_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(2, 5, 7);
    if (!two_vectors) continue;
    _tile_loadd(6, query + kLanes, p.query_bytes);
    _tile_loadd(7, query + p.query_part_units + kLanes, p.query_bytes);
    _tile_dpbf16ps(3, 5, 6);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(3, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, p.query_bytes);
  _tile_stored(2, small_sums, p.query_bytes);
  if (!two_vectors) return;
  _tile_stored(1, sums + kLanes, p.query_bytes);
  _tile_stored(3, small_sums + kLanes, p.query_bytes);
}

struct Destination {
  float* maxima;  // Of this panel.
  uint32_t* matches;
  uint32_t first_token;
};

// Rows in ascending order; small_sums may be null.  `overflow` becomes NaN where a sum has
// overflowed, as in ScoreTile.
void TakeMaxima(const float* sums, const float* small_sums, uint32_t rows, uint32_t vectors,
                const Destination& to, __m512& overflow) {
  for (uint32_t v = 0; v < vectors; ++v) {
    __m512 maximum = _mm512_load_ps(to.maxima + v * kLanes);
    __m512i tokens = _mm512_setzero_si512();
    if (to.matches != nullptr) tokens = _mm512_load_si512(to.matches + v * kLanes);
    for (uint32_t row = 0; row < rows; ++row) {
      const size_t at = (size_t{row} * vectors + v) * kLanes;
      __m512 sum = _mm512_load_ps(sums + at);
      if (small_sums != nullptr) sum = _mm512_add_ps(sum, _mm512_load_ps(small_sums + at));
      overflow = Avx512::Watch(sum, overflow);
      if (to.matches == nullptr) {
        maximum = Avx512::Max(sum, maximum);
      } else {
        Avx512::MaxWithToken(sum, to.first_token + row, maximum, tokens);
      }
    }
    _mm512_store_ps(to.maxima + v * kLanes, maximum);
    if (to.matches != nullptr) _mm512_store_si512(to.matches + v * kLanes, tokens);
  }
}

template <Format format>
void ScoreBlock(Product product, float* sums, Destination to, __m512& overflow) {
  const uint32_t rows = product.rows_count;
  const uint32_t vectors = product.vectors;
  if constexpr (PartsOf(format) == 1) {
    MultiplyBfloat16(product, sums);
    TakeMaxima(sums, nullptr, rows, vectors, to, overflow);
  } else {
    float* const small_sums = sums + kTileRows * kPanelVectors * kLanes;
    for (uint32_t row = 0; row < rows; row += kTileRows) {
      MultiplyFloat16(product, sums, small_sums);
      TakeMaxima(sums, small_sums, Min(rows - row, kTileRows), vectors, to, overflow);
      product.rows += kTileRows * product.row_bytes / sizeof(float);
      to.first_token += kTileRows;
    }
  }
}

// Brings the rows after these into L2.
void PrefetchAfter(const std::byte* rows, size_t bytes) {
  const uintptr_t end = reinterpret_cast<uintptr_t>(rows) + bytes;
  for (size_t line = 0; line < bytes; line += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(end + line), 0, 2);
  }
}

template <Format format>
bool ScoreTiles(const ScoreTask& task) {
  const Shape shape = ShapeOf(task.dim);
  const uint32_t parts = PartsOf(format);
  float* const sums = task.scratch + size_t{parts} * kBlockRows * shape.row_stride;
  ConfigureTiles();
  bool is_finite = true;
  __m512 overflow = Avx512::Zero();
  for (uint32_t row = 0; row < task.row_count; row += kBlockRows) {
    const uint32_t rows = Min(task.row_count - row, kBlockRows);
    const std::byte* const first = task.rows + row * task.row_pitch_bytes;
    __m512 poison = Avx512::Clean();
    for (uint32_t r = 0; r < rows; ++r) {
      ReadPairs<format>(first + r * task.row_pitch_bytes, task.dim, shape,
                        task.scratch + r * shape.row_stride, poison);
    }
    PrefetchAfter(first, rows * task.row_pitch_bytes);
    is_finite = !Avx512::IsPoisoned(poison);
    if (!is_finite) break;
    const float* panel = task.packed_query;
    for (uint32_t q = 0; q < task.query_tokens; q += kPanelVectors * kLanes) {
      const uint32_t vectors = CeilDiv(Min(task.query_tokens - q, kPanelVectors * kLanes), kLanes);
      const Product product = {
          .rows = task.scratch,
          .row_bytes = shape.row_stride * sizeof(float),
          .row_part_units = size_t{kBlockRows} * shape.row_stride,
          .query = panel,
          .query_bytes = vectors * kLanes * sizeof(float),
          .query_part_units = size_t{shape.units} * vectors * kLanes,
          .units = shape.units,
          .vectors = vectors,
          .rows_count = rows,
      };
      const Destination to = {
          .maxima = task.maxima + q,
          .matches = task.matches == nullptr ? nullptr : task.matches + q,
          .first_token = task.first_token + row,
      };
      ScoreBlock<format>(product, sums, to, overflow);
      panel += size_t{parts} * shape.units * kPanelVectors * kLanes;
    }
  }
  _tile_release();
  return is_finite && !Avx512::AnyNan(overflow);
}

// [panels][parts][units][vectors * lanes].
template <Format format>
void PackPairs(const PackTask& task) {
  const Shape shape = ShapeOf(task.dim);
  float* panel = task.packed;
  for (uint32_t first = 0; first < task.tokens; first += kPanelVectors * kLanes) {
    const uint32_t tokens = Min(task.tokens - first, kPanelVectors * kLanes);
    const uint32_t width = CeilDiv(tokens, kLanes) * kLanes;
    for (uint32_t t = 0; t < width; ++t) {
      if (t < tokens) {
        __m512 ignored = Avx512::Clean();  // The query is finite: the caller's promise.
        ReadPairs<format>(task.rows + size_t{first + t} * task.dim * FormatBytes(format), task.dim,
                          shape, task.scratch, ignored);
      }
      for (uint32_t part = 0; part < PartsOf(format); ++part) {
        const float* const row = task.scratch + size_t{part} * kBlockRows * shape.row_stride;
        float* const out = panel + size_t{part} * shape.units * width + t;
        for (uint32_t unit = 0; unit < shape.units; ++unit) {
          // Bits, not a number: but a copy of a float keeps them.
          out[size_t{unit} * width] = t < tokens ? row[unit] : 0;
        }
      }
    }
    panel += size_t{PartsOf(format)} * shape.units * kPanelVectors * kLanes;
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
  arithmetic.score_rows[static_cast<int>(format)] = &ScoreTiles<format>;
  return arithmetic;
}

constexpr CpuArithmetic kBfloat16Arithmetic = MakeTileArithmetic<Format::kBfloat16>();
constexpr CpuArithmetic kFloat16Arithmetic = MakeTileArithmetic<Format::kFloat16>();
constexpr CpuArithmetic kArithmetic = MakeArithmetic<Avx512>();

}  // namespace

const CpuKernel kAmxBf16Kernel = {"amx_bf16",
                                  {&kBfloat16Arithmetic, &kFloat16Arithmetic, &kArithmetic}};

}  // namespace maxsimd
