#include "kernels/element_conversion.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Float16Test, EveryValueSurvivesTheWayToFloat32AndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = Float16ToFloat32(static_cast<uint16_t>(bits));
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(Float16ToFloat32(Float32ToFloat16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(Float32ToFloat16(value), bits);
  }
}

TEST(Float16Test, WidensByTheDefinition) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = static_cast<int>(bits >> 10);
    const int mantissa = static_cast<int>(bits & 0x3ff);
    const double value =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(Float16ToFloat32(static_cast<uint16_t>(bits)), value) << bits;
    ASSERT_EQ(Float16ToFloat32(static_cast<uint16_t>(bits | 0x8000)), -value) << bits;
  }
  EXPECT_EQ(Float16ToFloat32(0x7c00), kInfinity);
  EXPECT_EQ(Float16ToFloat32(0xfc00), -kInfinity);
}

TEST(Float16Test, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = Float16ToFloat32(static_cast<uint16_t>(bits));
    const float high = Float16ToFloat32(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(Float32ToFloat16(middle), bits + (bits & 1)) << bits;
    ASSERT_EQ(Float32ToFloat16(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(Float32ToFloat16(std::nextafter(middle, kInfinity)), bits + 1) << bits;
    ASSERT_EQ(Float32ToFloat16(-middle), (bits + (bits & 1)) | 0x8000) << bits;
  }
}

TEST(Float16Test, OverflowsToInfinityFromHalfwayOn) {
  EXPECT_EQ(Float32ToFloat16(65519.996f), 0x7bff);
  EXPECT_EQ(Float32ToFloat16(65520.0f), 0x7c00);
  EXPECT_EQ(Float32ToFloat16(-1e30f), 0xfc00);
  EXPECT_EQ(Float32ToFloat16(kInfinity), 0x7c00);
}

TEST(Bfloat16Test, EveryValueSurvivesTheWayToFloat32AndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = Bfloat16ToFloat32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Bfloat16ToFloat32(Float32ToBfloat16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(Float32ToBfloat16(value), bits);
  }
}

TEST(Bfloat16Test, RoundsToTheNearestAndTiesToEven) {
  const auto float_of = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  EXPECT_EQ(Float32ToBfloat16(float_of(0x3f808000)), 0x3f80);
  EXPECT_EQ(Float32ToBfloat16(float_of(0x3f808001)), 0x3f81);
  EXPECT_EQ(Float32ToBfloat16(float_of(0x3f818000)), 0x3f82);
  EXPECT_EQ(Float32ToBfloat16(float_of(0x3f817fff)), 0x3f81);
  EXPECT_EQ(Float32ToBfloat16(float_of(0x7f7fffff)), 0x7f80);
  EXPECT_EQ(Float32ToBfloat16(float_of(0x00000001)), 0x0000);
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat32(Float32ToBfloat16(float_of(0x7f800001)))));
}

TEST(AllFiniteTest, FindsEveryKindOfNonFiniteElementAtEveryPlace) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    alignas(4) std::byte bytes[37 * 4 + 1] = {};
    std::byte* const elements = bytes + 1;  // Any alignment.
    for (size_t i = 0; i < 37; ++i) StoreElement(type, -65504, elements, i);
    EXPECT_TRUE(AllFinite(type, elements, 37));
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      for (size_t i = 0; i < 37; ++i) {
        StoreElement(type, bad, elements, i);
        EXPECT_FALSE(AllFinite(type, elements, 37)) << ElementTypeName(type) << ' ' << bad << i;
        EXPECT_TRUE(AllFinite(type, elements, i));
        StoreElement(type, 1, elements, i);
      }
    }
    EXPECT_TRUE(AllFinite(type, elements, 0));
  }
}

}  // namespace
}  // namespace maxsimd
