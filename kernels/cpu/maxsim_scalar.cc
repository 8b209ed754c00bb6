// The kernel for any processor: the vectors have one lane.
#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/maxsim_body.h"

namespace maxsimd {
namespace {

float FloatFromBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

float WidenFloat16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return FloatFromBits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // Read as if the bias were float32's, then multiplied by 2^112: subnormals come out right too.
  return FloatFromBits(sign | magnitude << 13) * 0x1p112f;
}

struct Scalar {
  static constexpr uint32_t kLanes = 1;
  static constexpr uint32_t kVectors =
      4;  // 4 x 3 sums, 4 query values and an element: 16 registers.
  static constexpr uint32_t kRows = 3;
  static constexpr uint32_t kBlockRows = 24;
  static constexpr uint32_t kElementsPerUnit = 1;
  using Float = float;
  using Index = uint32_t;

  static Float Zero() { return 0; }
  static Float Load(const float* from) { return *from; }
  static void Store(float* to, Float value) { *to = value; }
  static Index LoadIndex(const uint32_t* from) { return *from; }
  static void StoreIndex(uint32_t* to, Index value) { *to = value; }
  static Float Broadcast(const std::byte* from) { return LoadFloat(from); }
  static Float Add(Float a, Float b) { return a + b; }
  static Float MulAdd(Float a, Float b, Float c) { return a * b + c; }
  static Float Max(Float value, Float maximum) { return value > maximum ? value : maximum; }
  static void MaxWithToken(Float value, uint32_t token, Float& maximum, Index& tokens) {
    if (!(value > maximum)) return;
    maximum = value;
    tokens = token;
  }

  // NaN from the first value on that isn't finite: 0 times it is NaN.
  static Float Watch(Float value, Float watched) { return value * 0 + watched; }
  static bool AnyNan(Float value) { return value != value; }

  template <Format format>
  struct Reader {
    static Float Read(const std::byte* bytes) {
      float value;
      if constexpr (format == Format::kFloat32) {
        __builtin_memcpy(&value, bytes, sizeof(value));
      } else {
        uint16_t bits;
        __builtin_memcpy(&bits, bytes, sizeof(bits));
        value = format == Format::kFloat16 ? WidenFloat16(bits)
                                           : FloatFromBits(static_cast<uint32_t>(bits) << 16);
      }
      return value;
    }
    static Float ReadTail(const std::byte* bytes, uint32_t) { return Read(bytes); }
  };
};

constexpr CpuArithmetic kArithmetic = MakeArithmetic<Scalar>();

}  // namespace

const CpuKernel kScalarKernel = {"scalar", {&kArithmetic}};

}  // namespace maxsimd
