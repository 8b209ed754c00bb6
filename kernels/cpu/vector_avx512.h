// The AVX-512 wrapper for maxsim_body.h (F, BW, DQ, VL): sixteen query tokens to a vector, 32
// registers.  Shared by the files that add to it; internal linkage, as all of maxsim_body.h.
#ifndef MAXSIMD_KERNELS_CPU_VECTOR_AVX512_H_
#define MAXSIMD_KERNELS_CPU_VECTOR_AVX512_H_

#include <immintrin.h>

#include "kernels/cpu/maxsim_body.h"

namespace maxsimd {
namespace {

struct Avx512 {
  static constexpr uint32_t kLanes = 16;
  static constexpr uint32_t kVectors = 2;  // 2 x 12 sums, 2 of the query, 1 element: 27 registers.
  static constexpr uint32_t kRows = 12;
  static constexpr uint32_t kBlockRows = 24;
  static constexpr uint32_t kElementsPerUnit = 1;
  using Float = __m512;
  using Index = __m512i;

  static Float Zero() { return _mm512_setzero_ps(); }
  static Float Load(const float* from) { return _mm512_load_ps(from); }
  static void Store(float* to, Float value) { _mm512_store_ps(to, value); }
  static Index LoadIndex(const uint32_t* from) { return _mm512_load_si512(from); }
  static void StoreIndex(uint32_t* to, Index value) { _mm512_store_si512(to, value); }
  static Float Broadcast(const std::byte* from) { return _mm512_set1_ps(LoadFloat(from)); }
  static Float Add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float MulAdd(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  // The second operand where either is NaN, or both are equal.
  static Float Max(Float value, Float maximum) { return _mm512_max_ps(value, maximum); }
  static void MaxWithToken(Float value, uint32_t token, Float& maximum, Index& tokens) {
    const __mmask16 is_larger = _mm512_cmp_ps_mask(value, maximum, _CMP_GT_OQ);
    maximum = _mm512_mask_mov_ps(maximum, is_larger, value);
    tokens = _mm512_mask_set1_epi32(tokens, is_larger, static_cast<int>(token));
  }

  // NaN from the first value on that isn't finite: 0 times it is NaN.
  static Float Watch(Float value, Float watched) {
    return _mm512_fmadd_ps(value, _mm512_setzero_ps(), watched);
  }
  static bool AnyNan(Float value) { return _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q) != 0; }

  template <Format format>
  struct Reader {
    static Float Read(const std::byte* bytes) {
      if constexpr (format == Format::kFloat32) {
        return _mm512_loadu_ps(bytes);
      } else {
        return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)));
      }
    }
    static Float ReadTail(const std::byte* bytes, uint32_t elements) {
      const __mmask16 mask = static_cast<__mmask16>((1u << elements) - 1);
      if constexpr (format == Format::kFloat32) {
        return _mm512_maskz_loadu_ps(mask, bytes);
      } else {
        return Widen(_mm256_maskz_loadu_epi16(mask, bytes));
      }
    }

   private:
    static Float Widen(__m256i halves) {
      if constexpr (format == Format::kFloat16) return _mm512_cvtph_ps(halves);
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    }
  };
};

}  // namespace
}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_VECTOR_AVX512_H_
