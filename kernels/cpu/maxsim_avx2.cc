// The kernel for AVX2, FMA and F16C: eight query tokens to a vector, sixteen registers.
#include <immintrin.h>

#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/maxsim_body.h"

namespace maxsimd {
namespace {

struct Avx2 {
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kVectors = 2;  // 2 x 6 sums, 2 of the query, 1 element: 15 registers.
  static constexpr uint32_t kRows = 6;
  static constexpr uint32_t kBlockRows = 24;
  static constexpr uint32_t kElementsPerUnit = 1;
  using Float = __m256;
  using Index = __m256i;

  static Float Zero() { return _mm256_setzero_ps(); }
  static Float Load(const float* from) { return _mm256_load_ps(from); }
  static void Store(float* to, Float value) { _mm256_store_ps(to, value); }
  static Index LoadIndex(const uint32_t* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void StoreIndex(uint32_t* to, Index value) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), value);
  }
  static Float Broadcast(const std::byte* from) { return _mm256_set1_ps(LoadFloat(from)); }
  static Float Add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float MulAdd(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  // The second operand where either is NaN, or both are equal.
  static Float Max(Float value, Float maximum) { return _mm256_max_ps(value, maximum); }
  static void MaxWithToken(Float value, uint32_t token, Float& maximum, Index& tokens) {
    const __m256 is_larger = _mm256_cmp_ps(value, maximum, _CMP_GT_OQ);
    const __m256 token_x8 = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(token)));
    maximum = _mm256_blendv_ps(maximum, value, is_larger);
    tokens =
        _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(tokens), token_x8, is_larger));
  }

  // NaN from the first value on that isn't finite: 0 times it is NaN.
  static Float Watch(Float value, Float watched) {
    return _mm256_fmadd_ps(value, _mm256_setzero_ps(), watched);
  }
  static bool AnyNan(Float value) {
    return _mm256_movemask_ps(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)) != 0;
  }

  template <Format format>
  struct Reader {
    static Float Read(const std::byte* bytes) {
      Float value;
      if constexpr (format == Format::kFloat32) {
        value = _mm256_loadu_ps(reinterpret_cast<const float*>(bytes));
      } else {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
        value = format == Format::kFloat16
                    ? _mm256_cvtph_ps(halves)
                    : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
      }
      return value;
    }
    static Float ReadTail(const std::byte* bytes, uint32_t elements) {
      alignas(32) std::byte padded[kLanes * 4] = {};
      __builtin_memcpy(padded, bytes, elements * FormatBytes(format));
      return Read(padded);
    }
  };
};

constexpr CpuArithmetic kArithmetic = MakeArithmetic<Avx2>();

}  // namespace

const CpuKernel kAvx2Kernel = {"avx2", {&kArithmetic}};

}  // namespace maxsimd
