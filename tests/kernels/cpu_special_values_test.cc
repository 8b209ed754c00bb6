// NaN, infinity, overflow and empty documents, on every instruction set.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

#include "tests/testing/cpu_isa_test.h"
#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class CpuSpecialValuesTest : public CpuIsaTest {};

TEST_P(CpuSpecialValuesTest, OneBadElementAnywhereMakesItsDocumentNonFinite) {
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : {1, 7, 16, 37, 130}) {
      TestGroup group({.element_type = type, .query_tokens = 3, .dim = dim, .lengths = {9, 28, 1}});
      for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
        for (const uint64_t row : {9, 10, 20, 33, 36}) {
          for (uint32_t k = 0; k < dim; ++k) {
            group.SetRow(row, k, bad);
            ScoreAlone(*scorer_, group);
            ASSERT_EQ(group.scores[0].status, DocumentStatus::kScored) << row << ' ' << k;
            ASSERT_EQ(group.scores[1].status, DocumentStatus::kNonFinite) << row << ' ' << k;
            ASSERT_EQ(group.scores[1].score, -kInfinity);
            ASSERT_EQ(group.scores[2].status, DocumentStatus::kScored) << row << ' ' << k;
            group.SetRow(row, k, 0.25f);
          }
        }
      }
    }
  }
}

// Dims and lengths of which whole blocks are multiplied where they lie.
TEST_P(CpuSpecialValuesTest, OneBadElementInALongDocumentMakesItNonFinite) {
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : {32, 128}) {
      TestGroup group({.element_type = type, .query_tokens = 3, .dim = dim, .lengths = {2, 70, 1}});
      for (uint32_t k = 0; k < dim; ++k) group.SetQuery(1, k, 0);
      for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
        for (const uint64_t row : {2, 20, 33, 34, 65, 66, 71}) {
          for (const uint32_t k : {0u, 17u, dim - 1}) {
            group.SetRow(row, k, bad);
            ScoreAlone(*scorer_, group);
            ASSERT_EQ(group.scores[0].status, DocumentStatus::kScored) << row << ' ' << k;
            ASSERT_EQ(group.scores[1].status, DocumentStatus::kNonFinite) << row << ' ' << k;
            ASSERT_EQ(group.scores[2].status, DocumentStatus::kScored) << row << ' ' << k;
            group.SetRow(row, k, 0.25f);
          }
        }
      }
    }
  }
}

TEST_P(CpuSpecialValuesTest, InfinityIsFoundWhereTheQueryIsZeroOrTheWeightIs) {
  for (const ElementType type : kAllElementTypes) {
    TestGroup group(
        {.element_type = type, .query_tokens = 1, .dim = 5, .lengths = {2, 2}, .weights = {0}});
    for (uint32_t k = 0; k < 5; ++k) group.SetQuery(0, k, 0);
    group.FillRow(1, -kInfinity);
    ScoreAlone(*scorer_, group);
    EXPECT_EQ(group.scores[0].status, DocumentStatus::kNonFinite);
    EXPECT_EQ(group.scores[1].status, DocumentStatus::kScored);
    EXPECT_EQ(group.scores[1].score, 0);
  }
}

TEST_P(CpuSpecialValuesTest, OnlyRowsThatADocumentCoversAreLookedAt) {
  for (const ElementType type : kAllElementTypes) {
    TestGroup group({.element_type = type, .query_tokens = 3, .dim = 19, .lengths = {40}});
    for (const uint64_t row : {0, 5, 19, 39}) group.FillRow(row, std::nanf(""));
    group.documents = {{1, 4}, {6, 13}, {5, 0}, {20, 19}, {5, 1}, {4, 2}, {40, 0}};
    ScoreAlone(*scorer_, group);
    EXPECT_TRUE(AgreesWithReference(group));
    EXPECT_EQ(group.scores[0].status, DocumentStatus::kScored);
    EXPECT_EQ(group.scores[2].status, DocumentStatus::kEmpty);
    EXPECT_EQ(group.scores[2].score, -kInfinity);
    EXPECT_EQ(group.scores[3].status, DocumentStatus::kScored);
    EXPECT_EQ(group.scores[4].status, DocumentStatus::kNonFinite);
  }
}

// Partial sums that pass beyond float32 leave infinity or NaN, never a similarity: passed over,
// they would let a worse row win.
TEST_P(CpuSpecialValuesTest, ASimilarityWhosePartialSumsOverflowMakesItsDocumentNonFinite) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    TestGroup group({.element_type = type, .query_tokens = 1, .dim = 300, .lengths = {2, 2, 1, 1}});
    // Infinity in the first chunk of 128 elements, minus infinity in the second: NaN.
    for (uint32_t k = 0; k < 300; ++k) group.SetQuery(0, k, k < 128 ? 1e30f : -1e30f);
    for (const uint64_t row : {0, 3, 4}) group.FillRow(row, 1e30f);
    for (const uint64_t row : {1, 2, 5}) group.FillRow(row, 1e-30f);
    ScoreAlone(*scorer_, group);
    for (const int document : {0, 1, 2}) {
      EXPECT_EQ(group.scores[document].status, DocumentStatus::kNonFinite) << document;
      EXPECT_EQ(group.scores[document].score, -kInfinity) << document;
    }
    EXPECT_EQ(group.scores[3].status, DocumentStatus::kScored);
    EXPECT_NEAR(group.scores[3].score, 128 - 172, 1);
  }
}

// The first row's similarity is beyond float32 by way of minus infinity, the second's fits.
TEST_P(CpuSpecialValuesTest, ARowThatOverflowsDownwardsOnItsWayUpIsNotPassedOver) {
  TestGroup group({.query_tokens = 1, .dim = 3, .lengths = {2}});
  const float query[] = {-3e38f, -3e38f, 1e38f};
  const float rows[2][3] = {{2, -10, -1}, {0, 1, 1}};
  for (uint32_t k = 0; k < 3; ++k) {
    group.SetQuery(0, k, query[k]);
    for (const uint64_t row : {0, 1}) group.SetRow(row, k, rows[row][k]);
  }
  ScoreAlone(*scorer_, group);
  EXPECT_EQ(group.scores[0].status, DocumentStatus::kNonFinite);  // Exactly: 2.3e39.
}

TEST_P(CpuSpecialValuesTest, OverflowIsNonFiniteWhateverTheWeight) {
  for (const float weight : {1.0f, 0.0f, -1.0f}) {
    TestGroup group({.query_tokens = 2, .dim = 4, .lengths = {3}, .weights = {weight, 1}});
    for (uint32_t k = 0; k < 4; ++k) group.SetQuery(0, k, 1e30f);
    for (uint64_t row = 0; row < 3; ++row) group.FillRow(row, 1e30f);
    for (uint32_t k = 0; k < 4; ++k) group.SetQuery(1, k, 1);
    ScoreAlone(*scorer_, group);
    EXPECT_EQ(group.scores[0].status, DocumentStatus::kNonFinite);
    EXPECT_EQ(group.scores[0].score, -kInfinity);
  }
}

// Whole tiles of rows, and queries of every width that a kernel has a product for: one row and one
// query token overflow, wherever they are.
TEST_P(CpuSpecialValuesTest, OverflowIsFoundInEveryRowAndQueryToken) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    for (const uint32_t tokens : {20, 64, 100, 256, 300}) {
      for (const uint32_t token : {0u, tokens / 3, tokens - 1}) {
        for (const uint64_t row : {0, 77, 127}) {
          SCOPED_TRACE(testing::Message() << tokens << ' ' << token << ' ' << row);
          TestGroup group({.element_type = type,
                           .query_tokens = tokens,
                           .dim = 128,
                           .lengths = {128, 128, 128}});
          // Each query token but one is 0 where the large element is, so that it has nothing of it.
          for (uint32_t i = 0; i < tokens; ++i) group.SetQuery(i, 5, i == token ? -1e20f : 0);
          group.SetRow(128 + row, 5, 1e20f);
          group.SetRow(256 + row, 5, 1e15f);  // Large, and finite.
          ScoreAlone(*scorer_, group);
          EXPECT_EQ(group.scores[0].status, DocumentStatus::kScored);
          EXPECT_EQ(group.scores[1].status, DocumentStatus::kNonFinite);
          EXPECT_EQ(group.scores[2].status, DocumentStatus::kScored);
        }
      }
    }
  }
}

// Small rows overflow too where the query is large enough.
TEST_P(CpuSpecialValuesTest, ALargeQueryOverflowsWithSmallRows) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    for (const uint32_t tokens : {20, 256}) {
      TestGroup group(
          {.element_type = type, .query_tokens = tokens, .dim = 128, .lengths = {128, 128}});
      for (uint64_t row = 0; row < 256; ++row) group.FillRow(row, row == 200 ? -1.5f : 0.25f);
      for (uint32_t k = 0; k < 128; ++k) group.SetQuery(tokens - 1, k, 3e36f);
      ScoreAlone(*scorer_, group);
      EXPECT_EQ(group.scores[0].status, DocumentStatus::kScored);
      EXPECT_EQ(group.scores[1].status, DocumentStatus::kNonFinite);
    }
  }
}

TEST_P(CpuSpecialValuesTest, AWeightedSumBeyondFloat32IsNonFinite) {
  TestGroup group({.query_tokens = 2, .dim = 1, .lengths = {1}, .weights = {3e38f, 3e38f}});
  group.SetQuery(0, 0, 1);
  group.SetQuery(1, 0, 1);
  group.SetRow(0, 0, 1);
  ScoreAlone(*scorer_, group);
  EXPECT_EQ(group.scores[0].status, DocumentStatus::kNonFinite);
  EXPECT_EQ(group.scores[0].score, -kInfinity);
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuSpecialValuesTest, ::testing::ValuesIn(CompiledIsaNames()),
                         IsaTestName);

}  // namespace
}  // namespace maxsimd
