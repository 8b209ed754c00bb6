// The kernel for AVX-512 with BF16: VDPBF16PS multiplies pairs of bfloat16 and adds both products
// to a float32; it takes subnormals as 0.  Everything else is plain AVX-512, and so are normalised
// rows, which would lose bits as bfloat16.
#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/vector_avx512.h"

namespace maxsimd {
namespace {

struct Avx512Bf16 : Avx512 {
  static constexpr uint32_t kElementsPerUnit = 2;

  // A unit is a pair: element 2u in its low half.
  static Float MulAdd(Float pairs_a, Float pairs_b, Float sums) {
    return _mm512_dpbf16_ps(sums, (__m512bh)pairs_a, (__m512bh)pairs_b);
  }

  template <Format format>
  struct Reader {
    static_assert(format == Format::kBfloat16);
    static Float Read(const std::byte* bytes) {
      return _mm512_castsi512_ps(_mm512_loadu_si512(bytes));
    }
    static Float ReadTail(const std::byte* bytes, uint32_t elements) {
      return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16((1u << elements) - 1, bytes));
    }
  };
};

constexpr CpuArithmetic MakePairArithmetic() {
  CpuArithmetic arithmetic;
  arithmetic.lanes = Avx512Bf16::kLanes;
  arithmetic.vectors = Avx512Bf16::kVectors;
  arithmetic.block_rows = Avx512Bf16::kBlockRows;
  arithmetic.elements_per_unit = Avx512Bf16::kElementsPerUnit;
  arithmetic.can_normalize = false;
  arithmetic.pack_query[2] = &PackQuery<Avx512Bf16, Format::kBfloat16>;
  arithmetic.score_rows[2] = &ScoreRows<Avx512Bf16, Format::kBfloat16>;
  return arithmetic;
}

constexpr CpuArithmetic kPairArithmetic = MakePairArithmetic();
constexpr CpuArithmetic kArithmetic = MakeArithmetic<Avx512>();

}  // namespace

const CpuKernel kAvx512Bf16Kernel = {"avx512_bf16", {&kPairArithmetic, &kArithmetic}};

}  // namespace maxsimd
