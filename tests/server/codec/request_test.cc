#include "server/codec/request.h"

#include <functional>

#include <gtest/gtest.h>

namespace maxsimd {
namespace {

Query SomeQuery() {
  Query query;
  query.element_type = ElementType::kFloat16;
  query.tokens = 2;
  query.dim = 3;
  query.data.resize(12);
  query.weights = {1, 0};
  return query;
}

TEST(QueryTest, EqualsOnlyWhatScoresTheSameBits) {
  EXPECT_EQ(SomeQuery(), SomeQuery());
  const std::function<void(Query*)> changes[] = {
      [](Query* query) { query->element_type = ElementType::kBfloat16; },
      [](Query* query) { query->tokens = 3; },
      [](Query* query) { query->dim = 6; },
      [](Query* query) { query->data.back() = std::byte{1}; },
      [](Query* query) { query->data.resize(10); },
      [](Query* query) { query->weights[0] = 2; },
      [](Query* query) { query->weights[1] = -0.0f; },
      [](Query* query) { query->weights.clear(); },
      [](Query* query) { query->aggregation = Aggregation::kMean; },
      [](Query* query) { query->normalize = true; },
      [](Query* query) { query->return_matches = true; },
  };
  for (const auto& change : changes) {
    Query changed = SomeQuery();
    change(&changed);
    EXPECT_FALSE(changed == SomeQuery()) << &change - changes;
  }
}

TEST(QueryTest, ViewsWhatItHolds) {
  const Query query = SomeQuery();
  const QueryView view = query.view();
  EXPECT_EQ(view.element_type, ElementType::kFloat16);
  EXPECT_EQ(view.tokens, 2u);
  EXPECT_EQ(view.dim, 3u);
  EXPECT_EQ(view.data, query.data.data());
  EXPECT_EQ(view.weights.data(), query.weights.data());
  EXPECT_EQ(view.weights.size(), 2u);
  EXPECT_EQ(query.row_bytes(), 6u);
}

TEST(DocumentIdsTest, GivesBackEachIdAlsoEmptyOnes) {
  DocumentIds ids;
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(ids[5], "");
  for (const char* id : {"", "a", "", "bc", ""}) ids.Add(id);
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(ids[0], "");
  EXPECT_EQ(ids[1], "a");
  EXPECT_EQ(ids[2], "");
  EXPECT_EQ(ids[3], "bc");
  EXPECT_EQ(ids[4], "");
}

TEST(ResultBytesTest, CountsTheIdAndWhatMatchesTake) {
  Query query = SomeQuery();
  const size_t plain = ResultBytes(query, "");
  EXPECT_GE(plain, sizeof(DocumentScore));
  EXPECT_EQ(ResultBytes(query, "abc"), plain + 3);
  query.return_matches = true;
  EXPECT_EQ(ResultBytes(query, ""), plain + 2 * sizeof(TokenMatch));
}

}  // namespace
}  // namespace maxsimd
