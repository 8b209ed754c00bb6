#include "client/cli/format.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

TEST(FormatTest, WritesFloatsThatReadBackToTheSameBits) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(std::strtof(FloatText(value).c_str(), nullptr), value);
    const auto back = nlohmann::json::parse(JsonFloat(value).dump());
    EXPECT_EQ(static_cast<float>(back.get<double>()), value) << FloatText(value);
  }
  EXPECT_EQ(JsonFloat(0.1f).dump(), "0.1");
}

TEST(FormatTest, HasNoJsonNumberForInfinity) {
  EXPECT_TRUE(JsonFloat(-std::numeric_limits<float>::infinity()).is_null());
  EXPECT_TRUE(JsonFloat(std::numeric_limits<float>::quiet_NaN()).is_null());
  EXPECT_EQ(FloatText(-std::numeric_limits<float>::infinity()), "-inf");
}

TEST(FormatTest, TrimsBetweenCharacters) {
  EXPECT_EQ(Trim("äöü", 3), "äöü");
  EXPECT_EQ(Trim("äöü", 2), "ä…");
  EXPECT_EQ(Trim("äöü", 1), "…");
  EXPECT_EQ(Trim("äöü", 0), "");
  EXPECT_EQ(Trim("a\tb\x1b[0m", 10), "a b [0m");
}

TEST(FormatTest, ReplacesInvalidUtf8InJson) {
  Json json;
  json["id"] = "a\xff";
  EXPECT_EQ(nlohmann::json::parse(JsonText(json))["id"], "a\xEF\xBF\xBD");
}

TEST(FormatTest, AlignsColumns) {
  EXPECT_EQ(Table({{"n", true}, {"name", false}}, {{"1", "ä"}, {"10", ""}}),
            " n  name\n 1  ä\n10\n");
}

}  // namespace
}  // namespace maxsimd
