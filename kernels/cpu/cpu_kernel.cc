#include "kernels/cpu/cpu_kernel.h"

namespace maxsimd {
namespace {

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t UnitsPerRow(const CpuArithmetic& arithmetic, uint32_t dim) {
  return (dim + arithmetic.elements_per_unit - 1) / arithmetic.elements_per_unit;
}

}  // namespace

const CpuArithmetic& ArithmeticFor(const CpuKernel& kernel, int element_type, bool normalize) {
  const CpuArithmetic& first = *kernel.arithmetics[0];
  const bool fits =
      first.score_rows[element_type] != nullptr && (first.can_normalize || !normalize);
  return fits ? first : *kernel.arithmetics[1];
}

size_t PackedQueryUnits(const CpuArithmetic& arithmetic, uint32_t tokens, uint32_t dim) {
  return RoundUp(tokens, size_t{arithmetic.lanes} * arithmetic.vectors) *
         UnitsPerRow(arithmetic, dim);
}

size_t ScratchUnits(const CpuArithmetic& arithmetic, uint32_t dim) {
  const size_t chunk_units = kCpuChunkElements / arithmetic.elements_per_unit;
  const size_t chunks = RoundUp(UnitsPerRow(arithmetic, dim), chunk_units) / chunk_units;
  const size_t widened = chunks * (chunk_units + kCpuChunkPadding) * arithmetic.block_rows;
  const size_t totals = size_t{arithmetic.block_rows} * arithmetic.vectors * arithmetic.lanes;
  return RoundUp(widened, 16) + totals;
}

size_t MaximaCount(const CpuArithmetic& arithmetic, uint32_t tokens) {
  return RoundUp(tokens, size_t{arithmetic.lanes} * arithmetic.vectors);
}

}  // namespace maxsimd
