// The kernel for AArch64: four query tokens to a vector, 32 registers.
#include <arm_neon.h>

#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/maxsim_body.h"

namespace maxsimd {
namespace {

struct Neon {
  static constexpr uint32_t kLanes = 4;
  static constexpr uint32_t kVectors = 4;  // 4 x 6 sums, 4 of the query, 1 element: 29 registers.
  static constexpr uint32_t kRows = 6;
  static constexpr uint32_t kBlockRows = 24;
  static constexpr uint32_t kElementsPerUnit = 1;
  using Float = float32x4_t;
  using Index = uint32x4_t;

  static Float Zero() { return vdupq_n_f32(0); }
  static Float Load(const float* from) { return vld1q_f32(from); }
  static void Store(float* to, Float value) { vst1q_f32(to, value); }
  static Index LoadIndex(const uint32_t* from) { return vld1q_u32(from); }
  static void StoreIndex(uint32_t* to, Index value) { vst1q_u32(to, value); }
  static Float Broadcast(const std::byte* from) { return vdupq_n_f32(LoadFloat(from)); }
  static Float Add(Float a, Float b) { return vaddq_f32(a, b); }
  static Float MulAdd(Float a, Float b, Float c) { return vfmaq_f32(c, a, b); }
  // Not vmaxq_f32, which prefers a NaN.
  static Float Max(Float value, Float maximum) {
    return vbslq_f32(vcgtq_f32(value, maximum), value, maximum);
  }
  static void MaxWithToken(Float value, uint32_t token, Float& maximum, Index& tokens) {
    const uint32x4_t is_larger = vcgtq_f32(value, maximum);
    maximum = vbslq_f32(is_larger, value, maximum);
    tokens = vbslq_u32(is_larger, vdupq_n_u32(token), tokens);
  }

  // NaN from the first value on that isn't finite: 0 times it is NaN.
  static Float Watch(Float value, Float watched) {
    return vfmaq_f32(watched, value, vdupq_n_f32(0));
  }
  static bool AnyNan(Float value) { return vminvq_u32(vceqq_f32(value, value)) == 0; }

  template <Format format>
  struct Reader {
    static Float Read(const std::byte* bytes) {
      Float value;
      if constexpr (format == Format::kFloat32) {
        value = vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(bytes)));
      } else {
        const uint16x4_t halves =
            vreinterpret_u16_u8(vld1_u8(reinterpret_cast<const uint8_t*>(bytes)));
        value = format == Format::kFloat16
                    ? vcvt_f32_f16(vreinterpret_f16_u16(halves))
                    : vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(halves), 16));
      }
      return value;
    }
    static Float ReadTail(const std::byte* bytes, uint32_t elements) {
      alignas(16) std::byte padded[kLanes * 4] = {};
      __builtin_memcpy(padded, bytes, elements * FormatBytes(format));
      return Read(padded);
    }
  };
};

constexpr CpuArithmetic kArithmetic = MakeArithmetic<Neon>();

}  // namespace

const CpuKernel kNeonKernel = {"neon", {&kArithmetic}};

}  // namespace maxsimd
