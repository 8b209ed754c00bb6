// The oracle against values worked out by hand.
#include "kernels/reference/reference_scorer.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Query rows (1, 2) and (0, -1); documents {(3, 1), (1, 3)} and {(-1, 0)}.
TestGroup SmallGroup(TestGroupOptions options = {}) {
  options.query_tokens = 2;
  options.dim = 2;
  options.lengths = {2, 1};
  TestGroup group(options);
  const float query[2][2] = {{1, 2}, {0, -1}};
  const float rows[3][2] = {{3, 1}, {1, 3}, {-1, 0}};
  for (uint32_t k = 0; k < 2; ++k) {
    for (uint32_t i = 0; i < 2; ++i) group.SetQuery(i, k, query[i][k]);
    for (uint32_t j = 0; j < 3; ++j) group.SetRow(j, k, rows[j][k]);
  }
  return group;
}

TEST(ReferenceScorerTest, SumsTheMaximumOfEachQueryToken) {
  TestGroup group = SmallGroup();
  const auto results = ReferenceScores(group.View());
  ASSERT_EQ(results.size(), 2u);
  // Dot products: 5 and 7; -1 and -3.
  EXPECT_EQ(results[0].score, 7 - 1);
  EXPECT_EQ(results[0].tokens[0].document_token, 1u);
  EXPECT_EQ(results[0].tokens[1].document_token, 0u);
  EXPECT_DOUBLE_EQ(results[0].bound, 1e-5 * (7 + 3) + 1e-30);
  EXPECT_EQ(results[1].score, -1 + 0);
}

TEST(ReferenceScorerTest, WeightsAndMeanDivideScoreAndBound) {
  TestGroup group = SmallGroup({.aggregation = Aggregation::kMean, .weights = {3, -1}});
  const auto results = ReferenceScores(group.View());
  EXPECT_EQ(results[0].score, (3 * 7 + 1) / 2.0);
  EXPECT_DOUBLE_EQ(results[0].bound, 1e-5 * (3 * 7 + 3) / 2 + 1e-30);
}

TEST(ReferenceScorerTest, NormalizesRowsAndKeepsRowsOfNormZero) {
  TestGroup group = SmallGroup({.normalize = true});
  group.FillRow(2, 0);
  const auto results = ReferenceScores(group.View());
  EXPECT_DOUBLE_EQ(results[0].tokens[0].similarity, 7 / std::sqrt(50.0));
  EXPECT_EQ(results[1].score, 0);
}

TEST(ReferenceScorerTest, EmptyComesBeforeNonFinite) {
  TestGroup group = SmallGroup();
  group.SetRow(1, 1, std::nanf(""));
  group.documents = {{0, 2}, {1, 0}, {1, 1}, {0, 1}, {2, 1}};
  const auto results = ReferenceScores(group.View());
  EXPECT_EQ(results[0].status, DocumentStatus::kNonFinite);
  EXPECT_EQ(results[1].status, DocumentStatus::kEmpty);
  EXPECT_EQ(results[1].score, kMinusInfinity);
  EXPECT_EQ(results[2].status, DocumentStatus::kNonFinite);
  EXPECT_EQ(results[3].status, DocumentStatus::kScored);
  EXPECT_EQ(results[4].status, DocumentStatus::kScored);
}

TEST(ReferenceScorerTest, AScoreBeyondFloat32IsNonFinite) {
  TestGroup group = SmallGroup();
  group.SetQuery(0, 0, 1e30f);
  group.SetRow(2, 0, 1e30f);
  const auto results = ReferenceScores(group.View());
  EXPECT_EQ(results[0].status, DocumentStatus::kScored);
  EXPECT_EQ(results[1].status, DocumentStatus::kNonFinite);
  EXPECT_EQ(results[1].score, kMinusInfinity);
}

TEST(ReferenceScorerTest, ScorerRefusesAnInconsistentGroup) {
  TestGroup group = SmallGroup();
  QueryGroup view = group.View();
  view.row_pitch_bytes += 4;
  ReferenceScorer scorer;
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&view, 1);
  EXPECT_EQ(scorer.Score(batch).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace maxsimd
