#include "kernels/cuda/work_plan.h"

#include <map>
#include <utility>

#include "gtest/gtest.h"

namespace maxsimd::cuda {
namespace {

constexpr uint32_t kBlocks = 10;

TileConfig HopperConfig(uint32_t chunks = 1) {
  TileConfig config;
  config.kernel = Kernel::kSm90;
  config.chunk_tokens = 32;
  config.chunks = chunks;
  config.atoms = 2;
  return config;
}

std::vector<DocumentRows> Documents(const std::vector<uint32_t>& lengths) {
  std::vector<DocumentRows> documents;
  uint64_t row = 0;
  for (const uint32_t length : lengths) {
    documents.push_back({row, length});
    row += length;
  }
  return documents;
}

// Every row of every document, once per chunk of the list, and nothing else.
void ExpectCovers(const WorkPlan& plan, const std::vector<DocumentRows>& documents,
                  uint32_t chunks) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> next;  // Token, of (document, chunk).
  for (const WorkItem& item : plan.items) {
    ASSERT_GT(item.rows, 0u);
    uint32_t& token = next[{item.document, item.chunk}];
    EXPECT_EQ(item.first_token, token);
    EXPECT_EQ(item.first_row, documents[item.document].first_row + token);
    token += item.rows;
    if (token < documents[item.document].length) {
      EXPECT_EQ(token % kTileRows, 0u);
    }
  }
  for (uint32_t d = 0; d < documents.size(); ++d) {
    for (uint32_t chunk = 0; chunk < chunks && documents[d].length > 0; ++chunk) {
      EXPECT_EQ((next[{d, chunk}]), documents[d].length);
    }
  }
}

WorkPlan Plan(const std::vector<DocumentRows>& documents, const TileConfig& config,
              uint32_t query_tokens = 32) {
  const PlannedGroup group{documents, query_tokens, 0};
  WorkPlan plan;
  PlanWork(absl::MakeConstSpan(&group, 1), config, kBlocks, {}, &plan);
  return plan;
}

TEST(WorkPlanTest, NoDocumentsNoItems) {
  const WorkPlan plan = Plan(Documents({0, 0}), HopperConfig());
  EXPECT_TRUE(plan.items.empty());
  EXPECT_EQ(plan.blocks, 0u);
}

TEST(WorkPlanTest, ShortDocumentsAreOneItemEachLongestFirst) {
  const auto documents = Documents({10, 300, 0, 64, 65});
  const WorkPlan plan = Plan(documents, HopperConfig());
  ASSERT_EQ(plan.items.size(), 4u);
  EXPECT_EQ(plan.blocks, 4u);
  EXPECT_TRUE(plan.splits.empty());
  const uint32_t order[] = {1, 4, 0, 3};  // Of as many tiles: in the order of documents.
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(plan.items[i].document, order[i]);
    EXPECT_EQ(plan.items[i].split, kNotSplit);
  }
  ExpectCovers(plan, documents, 1);
}

TEST(WorkPlanTest, ADocumentThatIsMostOfTheWorkIsSplit) {
  const auto documents = Documents({64 * 1000 - 5, 64, 7});
  const WorkPlan plan = Plan(documents, HopperConfig());
  ASSERT_EQ(plan.splits.size(), 1u);
  EXPECT_GE(plan.splits[0].parts, kBlocks);
  EXPECT_EQ(plan.slots, plan.splits[0].parts);
  EXPECT_EQ(plan.blocks, kBlocks);
  for (uint32_t part = 0; part < plan.splits[0].parts; ++part) {
    EXPECT_EQ(plan.items[part].slot, part);
    EXPECT_EQ(plan.items[part].siblings, plan.splits[0].parts);
  }
  ExpectCovers(plan, documents, 1);
}

TEST(WorkPlanTest, BlocksThatKeepToAChunkAreAWholeNumberPerChunk) {
  const auto documents = Documents({64, 64, 64, 64, 64});
  const WorkPlan plan = Plan(documents, HopperConfig(/*chunks=*/3), 96);
  EXPECT_EQ(plan.items.size(), 5u);  // Each block's chunk is its own.
  EXPECT_EQ(plan.blocks, 9u);
  ASSERT_EQ(plan.splits.size(), 5u);
  EXPECT_EQ(plan.splits[1].first_slot, 3u);
  EXPECT_EQ(plan.splits[1].chunks, 3u);
  EXPECT_EQ(plan.items[0].siblings, 3u);
  ExpectCovers(plan, documents, 1);
}

TEST(WorkPlanTest, TheGenericListHoldsAnItemPerChunk) {
  const auto documents = Documents({100, 3});
  const WorkPlan plan = Plan(documents, TileConfig(), 130);
  EXPECT_EQ(plan.items.size(), 6u);
  ASSERT_EQ(plan.splits.size(), 2u);
  EXPECT_EQ(plan.splits[0].chunks, 3u);
  ExpectCovers(plan, documents, 3);
}

TEST(WorkPlanTest, GroupsShareTheList) {
  const auto first = Documents({64, 200});
  const auto second = Documents({100});
  const PlannedGroup groups[] = {{first, 32, 0}, {second, 20, 2}};
  WorkPlan plan;
  PlanWork(groups, HopperConfig(), kBlocks, {}, &plan);
  ASSERT_EQ(plan.items.size(), 3u);
  EXPECT_EQ(plan.items[1].group, 1u);
  EXPECT_EQ(plan.items[1].document, 2u);
}

TEST(WorkPlanTest, TicketsCanCountTheItemsOfTheLongestDocument) {
  const auto documents = Documents({4'000'000'000u});
  const WorkPlan plan = Plan(documents, TileConfig(), 4096);
  ASSERT_EQ(plan.splits.size(), 1u);
  EXPECT_LE(plan.splits[0].parts * plan.splits[0].chunks, kMaxItemsOfDocument);
  ExpectCovers(plan, documents, 64);
}

}  // namespace
}  // namespace maxsimd::cuda
