#include "kernels/element_conversion.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace maxsimd {
namespace {

constexpr uint32_t kFloat32Infinity = 0x7f800000;

template <class Word>
Word Load(const std::byte* elements, size_t index) {
  Word word;
  std::memcpy(&word, elements + index * sizeof(Word), sizeof(Word));
  return word;
}

// An element is finite unless all its exponent bits are set.
template <class Word>
bool AllExponentsBelow(Word exponent_mask, const std::byte* elements, size_t count) {
  // No early exit, and all in words of the elements' size: so compilers vectorise the loop well.
  Word found = 0;
  for (size_t i = 0; i < count; ++i) {
    const Word exponent = Load<Word>(elements, i) & exponent_mask;
    found |= exponent == exponent_mask ? std::numeric_limits<Word>::max() : Word{0};
  }
  return found == 0;
}

}  // namespace

float Float16ToFloat32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // Zero or subnormal: a multiple of 2^-24.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 0x1f) return std::bit_cast<float>(sign | kFloat32Infinity | mantissa << 13);
  // The biases differ by 127 - 15 = 112.
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t Float32ToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kFloat32Infinity) return sign | 0x7e00;
  // 65,520 lies halfway between the largest float16, 65,504, and what would be the next.
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) return sign | 0x7c00;
  if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {  // Subnormal: count units of 2^-24.
    return sign | static_cast<uint16_t>(std::lrint(std::abs(value) * 0x1p24f));
  }
  // Adding just under half a unit, and the unit's own last bit, rounds ties to even; a carry
  // walks into the exponent, where it belongs.
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
}

float Bfloat16ToFloat32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t Float32ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float LoadElement(ElementType type, const std::byte* elements, size_t index) {
  switch (type) {
    case ElementType::kFloat32:
      return Load<float>(elements, index);
    case ElementType::kFloat16:
      return Float16ToFloat32(Load<uint16_t>(elements, index));
    case ElementType::kBfloat16:
      return Bfloat16ToFloat32(Load<uint16_t>(elements, index));
  }
  return 0;
}

void StoreElement(ElementType type, float value, std::byte* elements, size_t index) {
  if (type == ElementType::kFloat32) {
    std::memcpy(elements + index * sizeof(value), &value, sizeof(value));
    return;
  }
  const uint16_t bits =
      type == ElementType::kFloat16 ? Float32ToFloat16(value) : Float32ToBfloat16(value);
  std::memcpy(elements + index * sizeof(bits), &bits, sizeof(bits));
}

bool AllFinite(ElementType type, const std::byte* elements, size_t count) {
  switch (type) {
    case ElementType::kFloat32:
      return AllExponentsBelow<uint32_t>(kFloat32Infinity, elements, count);
    case ElementType::kFloat16:
      return AllExponentsBelow<uint16_t>(0x7c00, elements, count);
    case ElementType::kBfloat16:
      return AllExponentsBelow<uint16_t>(0x7f80, elements, count);
  }
  return false;
}

}  // namespace maxsimd
