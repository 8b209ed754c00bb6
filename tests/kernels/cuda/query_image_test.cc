#include "kernels/cuda/query_image.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

#include "kernels/element_conversion.h"
#include "tests/testing/test_group.h"

namespace maxsimd::cuda {
namespace {

TileConfig Config(const TestGroupOptions& options, bool sm90) {
  return ChooseTileConfig({options.element_type, options.query_tokens, options.dim,
                           options.normalize, options.return_matches},
                          {.has_sm90_kernels = sm90, .multiprocessors = 132});
}

std::vector<std::byte> Image(TestGroup& group, const TileConfig& config,
                             std::vector<float>* factors) {
  const QueryView query = group.View().query;
  std::vector<float> weights(query.tokens);
  WriteWeights(query, weights.data());
  std::vector<std::byte> image(QueryImageBytes(query, config), std::byte{0xff});
  factors->assign(query.tokens, -1);
  WriteQueryImage(query, config, weights.data(), image.data(),
                  query.normalize ? factors->data() : nullptr);
  return image;
}

TEST(QueryImageTest, GenericRowsArePaddedWithZeros) {
  TestGroup group({.query_tokens = 3, .dim = 40});
  const TileConfig config = Config(group.options(), false);
  std::vector<float> factors;
  const std::vector<std::byte> image = Image(group, config, &factors);
  ASSERT_EQ(image.size(), 64u * 256);
  const QueryView query = group.View().query;
  for (uint32_t token = 0; token < 64; ++token) {
    for (uint32_t k = 0; k < 64; ++k) {
      const float right =
          token < 3 && k < 40 ? LoadElement(query.element_type, query.data, token * 40 + k) : 0;
      EXPECT_EQ(LoadElement(query.element_type, image.data(), token * 64 + k), right);
    }
  }
}

TEST(QueryImageTest, HopperUnitsAreSwizzledAndWeightsFollow) {
  TestGroup group({.element_type = ElementType::kFloat16,
                   .query_tokens = 20,
                   .dim = 100,
                   .weights = std::vector<float>(20, 0.75f)});
  const TileConfig config = Config(group.options(), true);
  std::vector<float> factors;
  const std::vector<std::byte> image = Image(group, config, &factors);
  ASSERT_EQ(image.size(), 32u * 256 + 32 * 4 + 16);
  const QueryView query = group.View().query;
  for (uint32_t token = 0; token < 20; ++token) {
    for (uint32_t k = 0; k < 100; ++k) {
      const uint32_t unit = k % 64 / 8 ^ token % 8;
      const size_t at = k / 64 * 32 * 64 + token * 64 + unit * 8 + k % 8;
      EXPECT_EQ(LoadElement(query.element_type, image.data(), at),
                LoadElement(query.element_type, query.data, token * 100 + k));
    }
  }
  const std::byte* const weights = image.data() + QueryRowsBytes(config);
  EXPECT_EQ(LoadElement(ElementType::kFloat32, weights, 19), 0.75f);
  EXPECT_EQ(LoadElement(ElementType::kFloat32, weights, 20), 0);
}

TEST(QueryImageTest, TheLargestMagnitudeOfAWideBfloat16ChunkFollowsItsWeights) {
  TestGroup group({.element_type = ElementType::kBfloat16, .query_tokens = 300, .dim = 128});
  const TileConfig config = Config(group.options(), true);
  ASSERT_EQ(config.chunks, 2u);
  std::vector<float> factors;
  const std::vector<std::byte> image = Image(group, config, &factors);
  const QueryView query = group.View().query;
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    float largest = 0;
    for (size_t i = chunk * 256 * 128; i < (chunk == 0 ? 256 : 300) * 128u; ++i) {
      largest = std::max(largest, std::abs(LoadElement(query.element_type, query.data, i)));
    }
    const std::byte* const weights =
        image.data() + chunk * QueryChunkBytes(config) + QueryRowsBytes(config);
    EXPECT_EQ(LoadElement(ElementType::kFloat32, weights, 256), largest);
  }
}

TEST(QueryImageTest, HopperFloat32RowsAreSplitInTwoPlanes) {
  TestGroup group({.element_type = ElementType::kFloat32, .query_tokens = 20, .dim = 40});
  const TileConfig config = Config(group.options(), true);
  std::vector<float> factors;
  const std::vector<std::byte> image = Image(group, config, &factors);
  ASSERT_EQ(image.size(), 2 * 2u * 32 * 128 + 32 * 4 + 16);
  const QueryView query = group.View().query;
  for (uint32_t token = 0; token < 20; ++token) {
    for (uint32_t k = 0; k < 40; ++k) {
      const uint32_t unit = k % 32 / 4 ^ token % 8;
      const size_t at = k / 32 * 2 * 32 * 32 + token * 32 + unit * 4 + k % 4;
      const float high = LoadElement(ElementType::kFloat32, image.data(), at);
      const float low = LoadElement(ElementType::kFloat32, image.data(), at + 32 * 32);
      const float whole = LoadElement(ElementType::kFloat32, query.data, token * 40 + k);
      EXPECT_LE(std::abs(high), std::abs(whole));
      EXPECT_NEAR(high, whole, std::abs(whole) * 0x1p-10);
      // A TF32 of its own: what is left out of the two is 2^-22 of the whole.
      EXPECT_NEAR(double{high} + low, whole, std::abs(whole) * 0x1p-21);
    }
  }
}

TEST(QueryImageTest, FactorsUndoTheNorm) {
  for (const float size : {1e-40f, 1e-20f, 1.0f, 1e38f}) {
    TestGroup group({.query_tokens = 2, .dim = 4, .normalize = true});
    for (uint32_t k = 0; k < 4; ++k) group.SetQuery(0, k, size);
    for (uint32_t k = 0; k < 4; ++k) group.SetQuery(1, k, 0);
    std::vector<float> factors;
    const std::vector<std::byte> image = Image(group, Config(group.options(), false), &factors);
    EXPECT_NEAR(LoadElement(ElementType::kFloat32, image.data(), 2) * factors[0], 0.5, 1e-7);
    EXPECT_EQ(factors[1], 0);
  }
}

TEST(QueryImageTest, WeightsOfAMeanAreScaledWithTheirSum) {
  TestGroup group(
      {.query_tokens = 3, .aggregation = Aggregation::kMean, .weights = {3e-44f, 1e-44f, 0}});
  const QueryView query = group.View().query;
  float weights[3];
  const double divisor = WriteWeights(query, weights);
  const double sum = WeightSum(query.weights, 3);
  EXPECT_LE(weights[0], 2);
  EXPECT_GE(weights[0], 1);
  EXPECT_EQ(weights[0] / divisor, query.weights[0] / sum);
  EXPECT_EQ(weights[1] / divisor, query.weights[1] / sum);
}

TEST(QueryImageTest, WithoutAMeanTheDivisorIsOne) {
  TestGroup group({.query_tokens = 3});
  float weights[3];
  EXPECT_EQ(WriteWeights(group.View().query, weights), 1);
  EXPECT_EQ(weights[2], 1);
}

}  // namespace
}  // namespace maxsimd::cuda
