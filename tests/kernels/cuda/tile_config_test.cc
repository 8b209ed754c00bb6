#include "kernels/cuda/tile_config.h"

#include "gtest/gtest.h"

namespace maxsimd::cuda {
namespace {

constexpr DeviceTraits kHopper{.has_sm90_kernels = true, .multiprocessors = 132};
constexpr DeviceTraits kOther{.has_sm90_kernels = false, .multiprocessors = 108};

GroupShape Shape(uint32_t query_tokens, uint32_t dim, ElementType type = ElementType::kFloat16) {
  return {.element_type = type, .query_tokens = query_tokens, .dim = dim};
}

TEST(TileConfigTest, OnlyHopperGetsItsKernels) {
  EXPECT_EQ(ChooseTileConfig(Shape(32, 128), kHopper).kernel, Kernel::kSm90);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 128), kOther).kernel, Kernel::kGeneric);
}

TEST(TileConfigTest, WhatTheHopperKernelsCannotDoIsGeneric) {
  EXPECT_EQ(ChooseTileConfig(Shape(32, 512, ElementType::kFloat32), kHopper).kernel, Kernel::kSm90);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 513, ElementType::kFloat32), kHopper).kernel,
            Kernel::kGeneric);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 7), kHopper).kernel, Kernel::kGeneric);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 8), kHopper).kernel, Kernel::kSm90);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 1024), kHopper).kernel, Kernel::kSm90);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 1025), kHopper).kernel, Kernel::kGeneric);
  GroupShape normalized = Shape(32, 128);
  normalized.normalize = true;
  EXPECT_EQ(ChooseTileConfig(normalized, kHopper).kernel, Kernel::kGeneric);
}

TEST(TileConfigTest, TheChunkIsTheSmallestThatHoldsTheQuery) {
  EXPECT_EQ(ChooseTileConfig(Shape(1, 128), kHopper).chunk_tokens, 32u);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 128), kHopper).chunk_tokens, 32u);
  EXPECT_EQ(ChooseTileConfig(Shape(33, 128), kHopper).chunk_tokens, 64u);
  EXPECT_EQ(ChooseTileConfig(Shape(65, 128), kHopper).chunk_tokens, 128u);
  EXPECT_EQ(ChooseTileConfig(Shape(129, 128), kHopper).chunk_tokens, 256u);
  const TileConfig longest = ChooseTileConfig(Shape(4096, 128), kHopper);
  EXPECT_EQ(longest.chunk_tokens, 256u);
  EXPECT_EQ(longest.chunks, 16u);
}

TEST(TileConfigTest, Float32QueriesTakeTwoPlanesInChunksOfAtMost128) {
  TileConfig config = ChooseTileConfig(Shape(4096, 128, ElementType::kFloat32), kHopper);
  EXPECT_EQ(config.chunk_tokens, 128u);
  EXPECT_EQ(config.chunks, 32u);
  EXPECT_EQ(QueryRowsBytes(config), 2u * 128 * 128 * 4);
  config = ChooseTileConfig(Shape(32, 40, ElementType::kFloat32), kHopper);
  EXPECT_EQ(config.atoms, 2u);
  EXPECT_FALSE(config.whole_atoms);
}

TEST(TileConfigTest, LargeDimsGetSmallChunks) {
  EXPECT_EQ(ChooseTileConfig(Shape(100, 320), kHopper).chunk_tokens, 64u);
  EXPECT_EQ(ChooseTileConfig(Shape(100, 320), kHopper).chunks, 2u);
  EXPECT_EQ(ChooseTileConfig(Shape(100, 1024), kHopper).chunk_tokens, 32u);
}

TEST(TileConfigTest, BoxesOfTwoAtomsOnlyWhereRowsAreWholePairs) {
  EXPECT_EQ(ChooseTileConfig(Shape(32, 128), kHopper).box_atoms, 2u);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 96), kHopper).box_atoms, 1u);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 64), kHopper).box_atoms, 1u);
  EXPECT_EQ(ChooseTileConfig(Shape(32, 320), kHopper).box_atoms, 1u);
}

// Every query length and dim: what a launch asks for exists, matches never change the kernel.
class TileConfigOfTypeTest : public testing::TestWithParam<ElementType> {};

INSTANTIATE_TEST_SUITE_P(Types, TileConfigOfTypeTest,
                         testing::Values(ElementType::kFloat32, ElementType::kFloat16,
                                         ElementType::kBfloat16));

TEST_P(TileConfigOfTypeTest, EveryShapeFitsTheDevice) {
  for (uint32_t dim = 1; dim <= 4096; dim += dim < 1100 ? 1 : 61) {
    for (uint32_t tokens = 1; tokens <= 4096; tokens += tokens < 300 ? 13 : 499) {
      GroupShape shape = Shape(tokens, dim, GetParam());
      const TileConfig without = ChooseTileConfig(shape, kHopper);
      shape.return_matches = true;
      const TileConfig with = ChooseTileConfig(shape, kHopper);
      ASSERT_EQ(with.kernel, without.kernel) << tokens << ' ' << dim;
      if (with.kernel == Kernel::kGeneric) continue;
      for (const TileConfig& config : {with, without}) {
        ASSERT_GE(config.stages, 2u) << tokens << ' ' << dim;
        ASSERT_LE(config.stages, kMaxStages);
        ASSERT_LE(SharedBytes(config), kSm90BlockShared) << tokens << ' ' << dim;
        ASSERT_LE(config.blocks_per_multiprocessor * (SharedBytes(config) + 1024), 228u * 1024);
        ASSERT_GE(config.chunks * config.chunk_tokens, tokens);
        ASSERT_LE(config.chunks, 64u);
        ASSERT_LE(config.chunk_tokens, MaxChunkTokens(GetParam(), config.return_matches));
        ASSERT_GE(config.atoms * AtomColumns(GetParam()), dim);
        // Sums of 16-bit types over more than 128 elements are drained, which long chunks leave no
        // registers for.
        if (GetParam() != ElementType::kFloat32 && config.chunk_tokens > 64) {
          ASSERT_LE(dim, kDrainElements);
        }
      }
    }
  }
}

}  // namespace
}  // namespace maxsimd::cuda
