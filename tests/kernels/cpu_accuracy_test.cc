// Every instruction set against the oracle, over shapes and data.
#include <initializer_list>
#include <numeric>

#include "gtest/gtest.h"

#include "tests/testing/cpu_isa_test.h"
#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

constexpr TestData kAllData[] = {TestData::kSigned,   TestData::kPositive, TestData::kConstant,
                                 TestData::kOneLarge, TestData::kNegative, TestData::kTiny,
                                 TestData::kHuge};

class CpuAccuracyTest : public CpuIsaTest {
 protected:
  void ExpectRight(const TestGroupOptions& options) { ExpectScoresAsReference(*scorer_, options); }
};

TEST_P(CpuAccuracyTest, EveryDim) {
  std::vector<uint32_t> dims(17);
  std::iota(dims.begin(), dims.end(), 1);
  for (const uint32_t dim : {31,  33,  37,  48,  63,  64,  65,  96,  100,  111,  127,  128, 129,
                             250, 255, 256, 257, 320, 511, 513, 768, 1024, 2560, 4095, 4096}) {
    dims.push_back(dim);
  }
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : dims) {
      for (const TestData data : kAllData) {
        ExpectRight({.element_type = type,
                     .query_tokens = 5,
                     .dim = dim,
                     .lengths = {1, 13, 3},
                     .data = data,
                     .return_matches = true,
                     .misalignment = dim % 3,
                     .seed = dim});
      }
    }
  }
}

TEST_P(CpuAccuracyTest, EveryQueryLength) {
  std::vector<uint32_t> lengths(50);
  std::iota(lengths.begin(), lengths.end(), 1);
  for (const uint32_t tokens : {63, 64, 65, 127, 128, 129, 1030, 4096}) lengths.push_back(tokens);
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t tokens : lengths) {
      for (const TestData data : {TestData::kSigned, TestData::kPositive}) {
        ExpectRight({.element_type = type,
                     .query_tokens = tokens,
                     .dim = 40,
                     .lengths = {7, 2, 14},
                     .data = data,
                     .return_matches = true,
                     .seed = tokens});
      }
    }
  }
}

TEST_P(CpuAccuracyTest, EveryDocumentLength) {
  std::vector<uint32_t> lengths(75);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (const uint32_t length : {95, 96, 97, 191, 193, 1000, 1023, 65536}) lengths.push_back(length);
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : {3, 17}) {
      ExpectRight({.element_type = type,
                   .query_tokens = 5,
                   .dim = dim,
                   .lengths = lengths,
                   .return_matches = true});
    }
  }
}

TEST_P(CpuAccuracyTest, LongestQueryOfTheLargestDim) {
  for (const ElementType type : kAllElementTypes) {
    // The oracle's second is dear: only float32 has rounding errors of two kinds to show.
    for (const TestData data : {TestData::kConstant, TestData::kPositive}) {
      if (data == TestData::kPositive && type != ElementType::kFloat32) continue;
      ExpectRight({.element_type = type,
                   .query_tokens = GetParam() == "scalar" ? 300u : 4096u,
                   .dim = 4096,
                   .lengths = {2},
                   .data = data});
    }
  }
}

TEST_P(CpuAccuracyTest, ManyDocumentsOfTheCommonShape) {
  std::vector<uint32_t> lengths;
  for (uint32_t i = 0; i < 60; ++i) lengths.push_back(1 + i * 37 % 180);
  for (const ElementType type : kAllElementTypes) {
    ExpectRight({.element_type = type, .query_tokens = 32, .dim = 128, .lengths = lengths});
  }
}

TEST_P(CpuAccuracyTest, WeightsAndMean) {
  for (const ElementType type : kAllElementTypes) {
    for (const Aggregation aggregation : {Aggregation::kSum, Aggregation::kMean}) {
      ExpectRight({.element_type = type,
                   .query_tokens = 6,
                   .dim = 24,
                   .lengths = {4, 30, 1},
                   .aggregation = aggregation,
                   .weights = {0.5f, 0, -2, 1e6f, -0.0f, 1e-6f}});
      ExpectRight({.element_type = type,
                   .query_tokens = 100,
                   .dim = 24,
                   .lengths = {4, 30, 1},
                   .aggregation = aggregation});
    }
  }
}

TEST_P(CpuAccuracyTest, NormalizedRows) {
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : {1, 2, 7, 8, 9, 33, 128, 300, 1024, 4096}) {
      for (const TestData data : kAllData) {
        ExpectRight({.element_type = type,
                     .query_tokens = 9,
                     .dim = dim,
                     .lengths = {2, 13, 5},
                     .data = data,
                     .normalize = true,
                     .return_matches = true,
                     .seed = dim});
      }
    }
  }
}

TEST_P(CpuAccuracyTest, NormalizesRowsWhoseSquaresLeaveFloat32) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    TestGroup group({.element_type = type,
                     .query_tokens = 3,
                     .dim = 20,
                     .lengths = {1, 1, 1, 1, 4},
                     .normalize = true,
                     .return_matches = true});
    group.FillRow(0, 3e38f);
    group.FillRow(1, -1.5e-38f);
    group.FillRow(2, type == ElementType::kFloat32 ? 1e-45f : 2e-38f);
    group.FillRow(3, 0);
    for (uint32_t k = 0; k < 20; ++k) group.SetQuery(1, k, 2.5e38f);
    for (uint32_t k = 0; k < 20; ++k) group.SetQuery(2, k, 0);
    ScoreAlone(*scorer_, group);
    EXPECT_TRUE(AgreesWithReference(group)) << ElementTypeName(type);
    EXPECT_EQ(group.scores[3].score, 0);
  }
}

TEST_P(CpuAccuracyTest, SubnormalFloat32CountsInFull) {
  TestGroup group({.query_tokens = 2, .dim = 3, .lengths = {2}});
  for (uint32_t k = 0; k < 3; ++k) {
    group.SetQuery(0, k, 1e10f);
    group.SetQuery(1, k, -1e10f);
  }
  group.FillRow(0, 1e-40f);
  group.FillRow(1, 1e-41f);
  ScoreAlone(*scorer_, group);
  EXPECT_TRUE(AgreesWithReference(group));
  EXPECT_GT(group.scores[0].score, 2e-30f);
}

TEST_P(CpuAccuracyTest, TiesMatchTheLowestRow) {
  for (const ElementType type : kAllElementTypes) {
    TestGroup group({.element_type = type,
                     .query_tokens = 40,
                     .dim = 4,
                     .lengths = {100, 1, 29},
                     .data = TestData::kConstant,
                     .return_matches = true});
    for (uint32_t k = 0; k < 4; ++k) group.SetRow(77, k, 0.5f);
    for (uint32_t k = 0; k < 4; ++k) group.SetRow(93, k, 0.5f);
    ScoreAlone(*scorer_, group);
    for (uint32_t i = 0; i < 40; ++i) {
      EXPECT_EQ(group.matches[i].document_token, 77u);
      EXPECT_EQ(group.matches[40 + i].document_token, 0u);
      EXPECT_EQ(group.matches[80 + i].document_token, 0u);
    }
  }
}

TEST_P(CpuAccuracyTest, OverlappingUnsortedAndRepeatedDocuments) {
  for (const ElementType type : kAllElementTypes) {
    TestGroup group({.element_type = type, .query_tokens = 33, .dim = 37, .lengths = {60}});
    group.documents.clear();
    for (uint64_t row = 0; row + 25 <= 60; ++row) group.documents.push_back({59 - row - 24, 25});
    group.documents.push_back({0, 60});
    group.documents.push_back({60, 0});
    group.documents.push_back({0, 60});
    ScoreAlone(*scorer_, group);
    EXPECT_TRUE(AgreesWithReference(group)) << ElementTypeName(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuAccuracyTest, ::testing::ValuesIn(CompiledIsaNames()),
                         IsaTestName);

}  // namespace
}  // namespace maxsimd
