#include "server/rpc/top_k.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

std::vector<uint32_t> Indices(const std::vector<TopK::Result>& results) {
  std::vector<uint32_t> indices;
  for (const TopK::Result& result : results) indices.push_back(result.index);
  return indices;
}

// The k best of documents 0, 1, ... with these scores, added in this order.
std::vector<uint32_t> Best(uint32_t k, const std::vector<float>& scores) {
  TopK top(k);
  for (uint32_t i = 0; i < scores.size(); ++i) top.Add(i, {scores[i]}, "", {});
  return Indices(top.Take());
}

TEST(TopKTest, KeepsTheBestBestFirst) {
  EXPECT_THAT(Best(3, {1, 5, 3, 4, 2}), ElementsAre(1, 3, 2));
  EXPECT_THAT(Best(1, {1, 5, 3}), ElementsAre(1));
}

TEST(TopKTest, KeepsNothingForZero) {
  EXPECT_THAT(Best(0, {1, 2, 3}), IsEmpty());
}

TEST(TopKTest, KeepsAllWhereThereAreFewer) {
  EXPECT_THAT(Best(std::numeric_limits<uint32_t>::max(), {1, 3, 2}), ElementsAre(1, 2, 0));
  EXPECT_THAT(Best(5, {}), IsEmpty());
}

TEST(TopKTest, PutsTheLowerIndexFirstAtEqualScores) {
  EXPECT_THAT(Best(3, {7, 7, 7, 7}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Best(2, {0.0f, -0.0f, 0.0f}), ElementsAre(0, 1));  // Equal numbers.
}

TEST(TopKTest, PutsTheLowerIndexFirstWhateverCameFirst) {
  TopK top(2);
  for (const uint32_t index : {9u, 3u, 7u, 1u}) top.Add(index, {1.5f}, "", {});
  EXPECT_THAT(Indices(top.Take()), ElementsAre(1, 3));
}

TEST(TopKTest, PutsDocumentsWithoutAScoreLast) {
  TopK top(4);
  top.Add(0, {kLowest, DocumentStatus::kEmpty}, "", {});
  top.Add(1, {-1e30f}, "", {});
  top.Add(2, {kLowest, DocumentStatus::kNonFinite}, "", {});
  top.Add(3, {2}, "", {});
  const std::vector<TopK::Result> results = top.Take();
  EXPECT_THAT(Indices(results), ElementsAre(3, 1, 0, 2));
  EXPECT_EQ(results[2].score.status, DocumentStatus::kEmpty);
  EXPECT_EQ(results[3].score.status, DocumentStatus::kNonFinite);
}

TEST(TopKTest, KeepsIdsAndTheMatchesOfScoredDocuments) {
  const std::vector<TokenMatch> matches = {{4, 0.5f}, {2, 0.25f}};
  TopK top(2);
  {
    const std::string id = "a name that is freed before it is read";
    top.Add(8, {1}, id, matches);
    top.Add(9, {kLowest, DocumentStatus::kNonFinite}, "x", matches);
  }
  const std::vector<TopK::Result> results = top.Take();
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0].id, "a name that is freed before it is read");
  ASSERT_THAT(results[0].matches, SizeIs(2));
  EXPECT_EQ(results[0].matches[1].document_token, 2u);
  EXPECT_EQ(results[0].matches[1].similarity, 0.25f);
  EXPECT_EQ(results[1].id, "x");
  EXPECT_THAT(results[1].matches, IsEmpty());
}

TEST(TopKTest, TakingLeavesNothing) {
  TopK top(2);
  top.Add(0, {1}, "", {});
  EXPECT_EQ(top.size(), 1u);
  EXPECT_THAT(top.Take(), SizeIs(1));
  EXPECT_EQ(top.size(), 0u);
  EXPECT_THAT(top.Take(), IsEmpty());
}

TEST(TopKTest, AgreesWithSortingWhateverTheOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const uint32_t k = random() % 20;
    std::vector<std::pair<float, uint32_t>> documents;  // Negated score, index: sorts as we rank.
    for (uint32_t i = 0; i < random() % 60; ++i) {
      const uint32_t pick = random() % 8;  // Few distinct scores: many ties.
      documents.emplace_back(pick == 0 ? -kLowest : -static_cast<float>(pick), i);
    }
    std::shuffle(documents.begin(), documents.end(), random);
    TopK top(k);
    for (const auto& [negated, index] : documents) {
      top.Add(index, {-negated}, "", {});
      ASSERT_LE(top.size(), k);
    }
    std::sort(documents.begin(), documents.end());
    std::vector<uint32_t> expected;
    for (size_t i = 0; i < std::min<size_t>(k, documents.size()); ++i) {
      expected.push_back(documents[i].second);
    }
    EXPECT_EQ(Indices(top.Take()), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace maxsimd
