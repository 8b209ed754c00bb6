// The table of instruction sets: what CpuScorer calls, and tests iterate.
//
// A kernel computes, for some rows of one document, the running maximum of each query token:
//
//   maxima[i] = max(maxima[i], <q_i, d_j>)   over the rows j, in ascending order
//
// Vector lanes run over query tokens, so that a document element is broadcast from memory, a dot
// product never needs a sum across lanes, and its operations are the same wherever the row stands.
// A "unit" is 32 bits that one lane takes at a time: one float32, or two neighbouring bfloat16.
//
// Shapes: the packed query is [panels][units of a row][vectors * lanes] units, a panel being as
// many query tokens as a kernel's registers block over; missing tokens are 0, and the last panel
// has only as many vectors as it needs. Precision: float32 accumulation in chunks of 128 elements,
// the chunks' sums added in order: at dim 4,096 at most 128 + 31 roundings of 2^-24, which
// is 9.5e-6 of the sum of magnitudes even if all err the same way. Special values: score_rows
// returns false where a sum is not finite: one that overflows, or one with an infinite or NaN
// element in it, since all of them are looked at, and 0 times such an element is NaN.
// Threads: all functions are pure.
//
// Included by the files that are compiled for one instruction set: no inline function may stand
// here, since the linker could keep that file's copy for everyone.
#ifndef MAXSIMD_KERNELS_CPU_CPU_KERNEL_H_
#define MAXSIMD_KERNELS_CPU_CPU_KERNEL_H_

#include <cstddef>
#include <cstdint>

namespace maxsimd {

inline constexpr uint32_t kCpuChunkElements = 128;
// One cache line more than a chunk, so that the rows of a tile fall into different cache sets.
inline constexpr uint32_t kCpuChunkPadding = 16;

struct PackTask {
  const std::byte* rows = nullptr;  // [tokens, dim] back to back; any alignment.
  uint32_t tokens = 0;
  uint32_t dim = 0;
  bool normalize = false;
  float* scratch = nullptr;  // ScratchUnits() units, 64-byte aligned.
  float* packed = nullptr;   // PackedQueryUnits() units, 64-byte aligned.
};

struct ScoreTask {
  const float* packed_query = nullptr;
  uint32_t query_tokens = 0;
  uint32_t dim = 0;
  bool normalize = false;  // The rows; the packed query is normalised already.

  const std::byte* rows = nullptr;  // Any alignment; nothing beyond row_count rows is read.
  size_t row_pitch_bytes = 0;
  uint32_t row_count = 0;
  uint32_t first_token = 0;  // What `rows` starts at within the document, for matches.

  float* scratch = nullptr;     // ScratchUnits() units, 64-byte aligned.
  float* maxima = nullptr;      // [query_tokens rounded up to lanes], 64-byte aligned.
  uint32_t* matches = nullptr;  // The same shape; null: not asked for.
};

// One way of multiplying, for each element type in the order of ElementType; null where it can't.
struct CpuArithmetic {
  uint32_t lanes = 0;
  uint32_t vectors = 0;     // Query vectors of a panel.
  uint32_t block_rows = 0;  // Document rows that are widened at a time.
  uint32_t elements_per_unit = 1;
  uint32_t tile_units = 1;  // More than 1: rows are padded to whole tiles, and not cut into chunks.
  uint32_t parts = 1;       // Units that an element is the sum of.
  bool can_normalize = true;
  void (*pack_query[3])(const PackTask&) = {};
  bool (*score_rows[3])(const ScoreTask&) = {};
};

struct CpuKernel {
  const char* isa = nullptr;
  // Tried in order: the first that takes the element type and the normalisation.
  const CpuArithmetic* arithmetics[3] = {};
};

const CpuArithmetic& ArithmeticFor(const CpuKernel& kernel, int element_type, bool normalize);
size_t PackedQueryUnits(const CpuArithmetic& arithmetic, uint32_t tokens, uint32_t dim);
size_t ScratchUnits(const CpuArithmetic& arithmetic, uint32_t dim);
size_t MaximaCount(const CpuArithmetic& arithmetic, uint32_t tokens);

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_CPU_KERNEL_H_
