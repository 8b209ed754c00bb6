#include "kernels/cpu/cpu_kernel.h"

namespace maxsimd {
namespace {

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Whole tiles.
size_t UnitsPerRow(const CpuArithmetic& arithmetic, uint32_t dim) {
  const size_t units = RoundUp(dim, arithmetic.elements_per_unit) / arithmetic.elements_per_unit;
  return RoundUp(units, arithmetic.tile_units);
}

}  // namespace

const CpuArithmetic& ArithmeticFor(const CpuKernel& kernel, int element_type, bool normalize) {
  const CpuArithmetic* const* arithmetic = kernel.arithmetics;
  // The last takes everything.
  while ((*arithmetic)->score_rows[element_type] == nullptr ||
         (normalize && !(*arithmetic)->can_normalize)) {
    ++arithmetic;
  }
  return **arithmetic;
}

size_t PackedQueryUnits(const CpuArithmetic& arithmetic, uint32_t tokens, uint32_t dim) {
  return MaximaCount(arithmetic, tokens) * UnitsPerRow(arithmetic, dim) * arithmetic.parts;
}

size_t ScratchUnits(const CpuArithmetic& arithmetic, uint32_t dim) {
  const size_t units = UnitsPerRow(arithmetic, dim);
  const size_t sums = size_t{arithmetic.block_rows} * arithmetic.vectors * arithmetic.lanes;
  if (arithmetic.tile_units > 1) {
    // Tiles multiply one block while the next is made ready and the maxima of the last are taken.
    return 2 * (units * arithmetic.block_rows * arithmetic.parts + sums);
  }
  const size_t chunk_units = kCpuChunkElements / arithmetic.elements_per_unit;
  const size_t chunks = RoundUp(units, chunk_units) / chunk_units;
  return chunks * (chunk_units + kCpuChunkPadding) * arithmetic.block_rows + sums;
}

size_t MaximaCount(const CpuArithmetic& arithmetic, uint32_t tokens) {
  return RoundUp(tokens, size_t{arithmetic.lanes} * arithmetic.vectors);
}

}  // namespace maxsimd
