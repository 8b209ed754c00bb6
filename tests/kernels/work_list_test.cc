#include "kernels/cpu/work_list.h"

#include <vector>

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

class WorkListTest : public ::testing::Test {
 protected:
  QueryGroup Group(const std::vector<uint32_t>& lengths) {
    std::vector<DocumentRows>& documents = documents_.emplace_back();
    for (const uint32_t length : lengths) documents.push_back({0, length});
    QueryGroup group;
    group.query.tokens = 10;
    group.query.dim = 10;  // 100 multiply-adds a token.
    group.documents = documents;
    return group;
  }

  // Cuts, and checks that every token of every document is in exactly one item, in order.
  std::vector<WorkItem> Cut(const std::vector<QueryGroup>& groups, double multiply_adds) {
    std::vector<WorkItem> items(3);  // What was there before is cleared.
    CutWork(groups, 0, multiply_adds, &items);
    size_t item = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t d = 0; d < groups[g].documents.size();) {
        const WorkItem& first = items.at(item);
        EXPECT_EQ(first.group, g);
        EXPECT_EQ(first.first_document, d);
        if (!first.is_part) {
          EXPECT_GT(first.documents, 0u);
          d += first.documents;
          ++item;
          continue;
        }
        uint32_t token = 0;
        for (; token < groups[g].documents[d].length; ++item) {
          EXPECT_TRUE(items.at(item).is_part);
          EXPECT_EQ(items[item].first_document, d);
          EXPECT_EQ(items[item].first_token, token);
          EXPECT_GT(items[item].tokens, 0u);
          token += items[item].tokens;
        }
        EXPECT_EQ(token, groups[g].documents[d].length);
        ++d;
      }
    }
    EXPECT_EQ(item, items.size());
    return items;
  }

 private:
  std::vector<std::vector<DocumentRows>> documents_;
};

TEST_F(WorkListTest, JoinsShortDocumentsAndSplitsLongOnes) {
  const std::vector<WorkItem> items = Cut({Group({50, 50, 50, 50, 1000, 50, 50})}, 100 * 100);
  EXPECT_EQ(items[0].documents, 2u);
  EXPECT_EQ(items[1].documents, 2u);
  EXPECT_TRUE(items[2].is_part);
  EXPECT_EQ(items[2].tokens, 96u);
  EXPECT_EQ(items.back().documents, 2u);
}

TEST_F(WorkListTest, ItemsHoldAboutWhatWasAsked) {
  std::vector<uint32_t> lengths;
  for (uint32_t i = 0; i < 300; ++i) lengths.push_back(i * 7919 % 2000);
  const double asked = 100 * 500;
  for (const WorkItem& item : Cut({Group(lengths)}, asked)) {
    double tokens = item.tokens;
    for (size_t d = 0; !item.is_part && d < item.documents; ++d) {
      tokens += lengths[item.first_document + d];
    }
    EXPECT_LE(tokens * 100, 2.5 * asked);
  }
}

TEST_F(WorkListTest, GroupsAreNotMixedAndEmptyDocumentsAreKept) {
  EXPECT_EQ(Cut({Group({}), Group({0, 0}), Group({1}), Group({65536})}, 1e9).size(), 3u);
}

TEST_F(WorkListTest, TheSmallestItemsStillCoverTheLongestDocument) {
  EXPECT_EQ(Cut({Group({65536})}, 1).size(), 683u);  // ceil(65,536 / 96).
}

TEST_F(WorkListTest, CountsMultiplyAddsBeyond64Bits) {
  std::vector<uint32_t> lengths(1000, 4'000'000'000);
  QueryGroup group = Group(lengths);
  group.query.tokens = 4'000'000'000;
  group.query.dim = 4'000'000'000;
  EXPECT_DOUBLE_EQ(MultiplyAdds(group), 6.4e31);
}

}  // namespace
}  // namespace maxsimd
