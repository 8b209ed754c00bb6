#include "server/codec/units.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/codec/random_message.h"
#include "tests/server/codec/unit_check.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One token of dim 4: a row is 8 bytes and 4 multiply-adds.
Query SmallQuery() {
  Query query;
  query.element_type = ElementType::kFloat16;
  query.tokens = 1;
  query.dim = 4;
  return query;
}

DocumentChunk Build(std::vector<DocumentRows> documents, const UnitLimits& limits,
                    const Query& query = SmallQuery()) {
  DocumentChunk chunk;
  chunk.row_bytes = query.row_bytes();
  for (const DocumentRows& rows : documents) {
    chunk.row_count = std::max(chunk.row_count, rows.first_row + rows.length);
  }
  chunk.documents = std::move(documents);
  BuildUnits(query, limits, &chunk);
  EXPECT_EQ(UnitsProblem(chunk, query, limits), "");
  return chunk;
}

// "first_row+row_count: documents"
std::vector<std::string> Describe(const DocumentChunk& chunk) {
  std::vector<std::string> units;
  for (const Unit& unit : chunk.units) {
    std::string text = std::to_string(unit.first_row) + "+" + std::to_string(unit.row_count) + ":";
    for (uint32_t i = unit.first; i < unit.first + unit.count; ++i) {
      text += " " + std::to_string(chunk.order[i]);
    }
    units.push_back(text);
  }
  return units;
}

TEST(UnitsTest, NoDocumentsMakeNoUnits) {
  EXPECT_THAT(Build({}, {}).units, IsEmpty());
  const DocumentChunk chunk = Build({{0, 0}, {0, 0}}, {});
  EXPECT_THAT(chunk.units, IsEmpty());
  EXPECT_THAT(chunk.order, IsEmpty());
  EXPECT_THAT(chunk.empty, ElementsAre(0, 1));
}

TEST(UnitsTest, GathersBackToBackDocumentsUpToTheByteExactly) {
  const std::vector<DocumentRows> documents = {{0, 1}, {1, 2}, {3, 3}};
  EXPECT_THAT(Describe(Build(documents, {.gather_bytes = 48})), ElementsAre("0+6: 0 1 2"));
  EXPECT_THAT(Describe(Build(documents, {.gather_bytes = 47})), ElementsAre("0+3: 0 1", "3+3: 2"));
  EXPECT_THAT(Describe(Build(documents, {.gather_bytes = 0})),
              ElementsAre("0+1: 0", "1+2: 1", "3+3: 2"));
}

TEST(UnitsTest, DoesNotGatherAcrossRowsThatNoDocumentCovers) {
  EXPECT_THAT(Describe(Build({{0, 1}, {2, 1}}, {})), ElementsAre("0+1: 0", "2+1: 1"));
}

TEST(UnitsTest, DocumentsThatOverlapShareAUnitWhateverItsSize) {
  const UnitLimits limits = {.gather_bytes = 0};
  EXPECT_THAT(Describe(Build({{0, 4}, {2, 4}, {4, 4}, {8, 1}}, limits)),
              ElementsAre("0+8: 0 1 2", "8+1: 3"));
  EXPECT_THAT(Describe(Build({{0, 9}, {1, 1}, {8, 3}}, limits)), ElementsAre("0+11: 0 1 2"));
}

TEST(UnitsTest, SortsByFirstRowAndKeepsTheOrderOfRepeats) {
  const DocumentChunk chunk =
      Build({{6, 2}, {0, 0}, {2, 1}, {6, 2}, {9, 0}, {2, 3}}, {.gather_bytes = 0});
  EXPECT_THAT(Describe(chunk), ElementsAre("2+3: 2 5", "6+2: 0 3"));
  EXPECT_THAT(chunk.empty, ElementsAre(1, 4));
}

TEST(UnitsTest, CutsOverlappingDocumentsAtTheWorkOfAUnit) {
  const std::vector<DocumentRows> documents = {{0, 4}, {1, 4}, {2, 4}};  // 16 multiply-adds each.
  EXPECT_THAT(Describe(Build(documents, {.max_multiply_adds = 32})),
              ElementsAre("0+5: 0 1", "2+4: 2"));
  EXPECT_THAT(Describe(Build(documents, {.max_multiply_adds = 31})),
              ElementsAre("0+4: 0", "1+4: 1", "2+4: 2"));
  EXPECT_THAT(Describe(Build(documents, {.max_multiply_adds = 1})),
              ElementsAre("0+4: 0", "1+4: 1", "2+4: 2"));
}

TEST(UnitsTest, CutsAtTheSizeOfTheResults) {
  const size_t one = ResultBytes(SmallQuery(), "");
  const std::vector<DocumentRows> documents = {{0, 1}, {0, 1}, {0, 1}};
  EXPECT_THAT(Describe(Build(documents, {.max_result_bytes = 2 * one})),
              ElementsAre("0+1: 0 1", "0+1: 2"));
  EXPECT_THAT(Describe(Build(documents, {.max_result_bytes = 2 * one - 1})),
              ElementsAre("0+1: 0", "0+1: 1", "0+1: 2"));
}

TEST(UnitsTest, HoldTheirPropertiesOverRandomDocuments) {
  Random random(1);
  for (int i = 0; i < 4000; ++i) {
    Query query = SmallQuery();
    query.return_matches = OneIn(3, &random);
    const uint32_t rows = 1 + Below(60, &random);
    std::vector<DocumentRows> documents(Below(30, &random));
    for (DocumentRows& document : documents) {
      document.length = Below(std::min(rows + 1, 8u), &random);
      document.first_row = Below(rows - document.length + 1, &random);
    }
    Build(documents,
          {.gather_bytes = Below(200, &random),
           .max_multiply_adds = Below(200, &random),
           .max_result_bytes = Below(200, &random)},
          query);
    ASSERT_FALSE(HasFailure()) << i;
  }
}

TEST(UnitsTest, AHundredThousandTinyDocumentsMakeFewUnits) {
  std::vector<DocumentRows> documents(100'000);
  for (uint32_t i = 0; i < documents.size(); ++i) documents[i] = {.first_row = i, .length = 1};
  DocumentChunk chunk;
  chunk.row_bytes = SmallQuery().row_bytes();
  chunk.documents = std::move(documents);
  BuildUnits(SmallQuery(), {}, &chunk);
  EXPECT_EQ(chunk.units.size(), 13u);  // 800,000 bytes by 64 KiB.
}

}  // namespace
}  // namespace maxsimd
