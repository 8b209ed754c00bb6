// The score of a (query, document) pair has the same bits however it is computed, on every
// instruction set.
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

#include "tests/testing/cpu_isa_test.h"
#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

class CpuBitsTest : public CpuIsaTest {
 protected:
  // 4 million multiply-adds and more: enough for helpers to be woken.
  static TestGroupOptions BigOptions(ElementType type, bool normalize = false) {
    TestGroupOptions options;
    options.element_type = type;
    options.query_tokens = 37;
    options.dim = 70;
    options.normalize = normalize;
    options.return_matches = true;
    options.lengths = {1700, 0, 3, 1};
    for (uint32_t i = 0; i < 40; ++i) options.lengths.push_back(1 + i * 29 % 60);
    return options;
  }

  static void ExpectSameBits(const TestGroup& a, const TestGroup& b) {
    EXPECT_EQ(ScoreBits(a.scores), ScoreBits(b.scores));
    ASSERT_EQ(a.matches.size(), b.matches.size());
    for (size_t i = 0; i < a.matches.size(); ++i) {
      const DocumentScore& score = a.scores[i / a.options().query_tokens];
      if (score.status != DocumentStatus::kScored) continue;
      ASSERT_EQ(a.matches[i].document_token, b.matches[i].document_token) << i;
      ASSERT_EQ(a.matches[i].similarity, b.matches[i].similarity) << i;
    }
  }
};

TEST_P(CpuBitsTest, SameWithAnyNumberOfThreads) {
  for (const ElementType type : kAllElementTypes) {
    TestGroup alone(BigOptions(type));
    alone.SetRow(1750, 3, std::nanf(""));
    ScoreAlone(*scorer_, alone);
    EXPECT_TRUE(AgreesWithReference(alone));
    ScoreAlone(*scorer_, alone);
    for (const int threads : {2, 3, 7}) {
      const std::unique_ptr<Scorer> scorer = NewScorer(threads);
      TestGroup group(BigOptions(type));
      group.SetRow(1750, 3, std::nanf(""));
      ScoreAlone(*scorer, group);
      ExpectSameBits(alone, group);
    }
  }
}

TEST_P(CpuBitsTest, ALongDocumentIsFoundNonFiniteByWhicheverPartHoldsTheRow) {
  const std::unique_ptr<Scorer> scorer = NewScorer(3);
  for (const uint64_t row : {0, 95, 96, 1000, 1699}) {
    TestGroup group(BigOptions(ElementType::kFloat16));
    group.SetRow(row, 69, std::nanf(""));
    ScoreAlone(*scorer, group);
    EXPECT_EQ(group.scores[0].status, DocumentStatus::kNonFinite) << row;
    EXPECT_EQ(group.scores[2].status, DocumentStatus::kScored) << row;
  }
}

TEST_P(CpuBitsTest, TheLongestDocumentInPartsIsTheSameAsInOnePiece) {
  TestGroupOptions options{
      .query_tokens = 6, .dim = 17, .lengths = {65536, 5, 65536}, .return_matches = true};
  TestGroup whole(options);
  ScoreAlone(*scorer_, whole);
  TestGroup parts(options);
  ScoreAlone(*NewScorer(3), parts);
  ExpectSameBits(whole, parts);
}

TEST_P(CpuBitsTest, SameAloneAndAmongOthers) {
  for (const ElementType type : kAllElementTypes) {
    for (const bool normalize : {false, true}) {
      TestGroup together(BigOptions(type, normalize));
      ScoreAlone(*NewScorer(2), together);
      TestGroup alone(BigOptions(type, normalize));
      const std::vector<DocumentRows> documents = alone.documents;
      for (size_t d = 0; d < documents.size(); ++d) {
        alone.documents = {documents[d]};
        ScoreAlone(*scorer_, alone);
        ASSERT_EQ(ScoreBits(alone.scores), ScoreBits({together.scores[d]})) << d;
      }
    }
  }
}

TEST_P(CpuBitsTest, SameWhereverARowStandsInItsDocument) {
  // One distinguished row whose similarity is the largest, at each place of documents of each
  // length; dim 64 is one that some kernels multiply where it lies, but only in whole blocks.
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : {64, 141}) {
      TestGroup group({.element_type = type, .query_tokens = 20, .dim = dim, .lengths = {80}});
      TestGroup single({.element_type = type, .query_tokens = 20, .dim = dim, .lengths = {1}});
      for (uint32_t k = 0; k < dim; ++k) {
        for (uint32_t i = 0; i < 20; ++i) {
          const float value = 1 + 0.01f * static_cast<float>((k * 7 + i * 13) % 50);
          group.SetQuery(i, k, value);
          single.SetQuery(i, k, value);
        }
        single.SetRow(0, k, 2 + 0.013f * static_cast<float>(k % 41));
      }
      ScoreAlone(*scorer_, single);
      for (uint64_t place = 0; place < 80; ++place) {
        for (uint32_t k = 0; k < dim; ++k) {
          group.SetRow(place, k, 2 + 0.013f * static_cast<float>(k % 41));
        }
        group.documents.clear();
        for (uint32_t length = 1; length <= 80; ++length) {
          const uint64_t first = place < length ? 0 : place + 1 - length;
          group.documents.push_back({first, length});
        }
        ScoreAlone(*scorer_, group);
        for (const DocumentScore& score : group.scores) {
          ASSERT_EQ(ScoreBits({score}), ScoreBits(single.scores)) << place << ' ' << dim;
        }
        group.FillRow(place, 0);
      }
    }
  }
}

TEST_P(CpuBitsTest, SameAtEveryByteOfAlignment) {
  for (const ElementType type : kAllElementTypes) {
    TestGroupOptions options{
        .element_type = type, .query_tokens = 18, .dim = 67, .lengths = {5, 40, 12}};
    TestGroup aligned(options);
    ScoreAlone(*scorer_, aligned);
    for (options.misalignment = 1; options.misalignment < 16; ++options.misalignment) {
      TestGroup group(options);
      ScoreAlone(*scorer_, group);
      ExpectSameBits(aligned, group);
    }
  }
}

TEST_P(CpuBitsTest, MatchesDoNotChangeTheScore) {
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t dim : {5, 128, 300}) {
      TestGroupOptions options{
          .element_type = type, .query_tokens = 45, .dim = dim, .lengths = {1, 90, 26, 13}};
      TestGroup without(options);
      ScoreAlone(*scorer_, without);
      options.return_matches = true;
      TestGroup with(options);
      ScoreAlone(*scorer_, with);
      EXPECT_EQ(ScoreBits(without.scores), ScoreBits(with.scores));
    }
  }
}

TEST_P(CpuBitsTest, GroupsOfOneBatchAreScoredAsEachAlone) {
  std::vector<std::unique_ptr<TestGroup>> groups;
  std::vector<std::unique_ptr<TestGroup>> alone;
  for (uint32_t i = 0; i < 12; ++i) {
    const TestGroupOptions options{.element_type = kAllElementTypes[i % 3],
                                   .query_tokens = 1 + i * 17,
                                   .dim = 1 + i * 31,
                                   .lengths = {i, 40, 100 * i, 3},
                                   .normalize = i % 4 == 1,
                                   .return_matches = i % 2 == 1,
                                   .seed = i + 1};
    groups.push_back(std::make_unique<TestGroup>(options));
    alone.push_back(std::make_unique<TestGroup>(options));
    ScoreAlone(*scorer_, *alone.back());
  }
  for (const int threads : {1, 3}) {
    std::vector<QueryGroup> views;
    for (const auto& group : groups) views.push_back(group->View());
    ScoreBatch batch;
    batch.groups = absl::MakeSpan(views);
    ASSERT_TRUE(NewScorer(threads)->Score(batch).ok());
    for (size_t i = 0; i < groups.size(); ++i) ExpectSameBits(*alone[i], *groups[i]);
  }
}

TEST_P(CpuBitsTest, ConcurrentCallsAndRepeatsGiveTheSame) {
  const std::unique_ptr<Scorer> scorer = NewScorer(3);
  TestGroup first(BigOptions(ElementType::kFloat16));
  ScoreAlone(*scorer, first);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      TestGroup group(BigOptions(ElementType::kFloat16));
      for (int repeat = 0; repeat < 3; ++repeat) {
        ScoreAlone(*scorer, group);
        ExpectSameBits(first, group);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuBitsTest, ::testing::ValuesIn(CompiledIsaNames()), IsaTestName);

}  // namespace
}  // namespace maxsimd
