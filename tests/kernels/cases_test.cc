// The calls with independently computed answers, through the oracle and every instruction set.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/reference/reference_scorer.h"
#include "tests/testing/case_files.h"
#include "tests/testing/cpu_isa_test.h"

namespace maxsimd {
namespace {

const std::string kCases = std::string(MAXSIMD_TEST_DATA) + "/cases";

void ExpectMatches(const CaseFile& file, const QueryGroup& group, size_t document) {
  // Where every value is exact nothing may differ.
  const bool is_exact = file.name == "match_ties" || file.name == "top_5";
  const auto reference = ReferenceScores(group);
  for (uint32_t i = 0; i < file.query_tokens; ++i) {
    const TokenMatch& match = group.matches[document * file.query_tokens + i];
    const CaseMatch& right = file.matches[document][i];
    const double bound = is_exact ? 0 : reference[document].tokens[i].Bound();
    EXPECT_LE(std::abs(match.similarity - right.similarity), bound) << i;
    if (match.document_token == right.document_token) continue;
    const double similarity = ReferenceSimilarity(group, document, i, match.document_token);
    EXPECT_FALSE(is_exact) << "query token " << i;
    EXPECT_GE(similarity, right.similarity - 2 * bound) << i;
  }
}

void ExpectRightAnswers(Scorer& scorer, const CaseFile& file) {
  std::vector<DocumentScore> scores(file.documents.size());
  std::vector<TokenMatch> matches(file.return_matches ? scores.size() * file.query_tokens : 0);
  QueryGroup group = file.View();
  group.scores = absl::MakeSpan(scores);
  group.matches = absl::MakeSpan(matches);
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&group, 1);
  const auto timings = scorer.Score(batch);
  ASSERT_TRUE(timings.ok()) << timings.status();
  for (size_t d = 0; d < scores.size(); ++d) {
    SCOPED_TRACE(file.name + " document " + std::to_string(d));
    EXPECT_EQ(scores[d].status, file.statuses[d]);
    if (file.statuses[d] != DocumentStatus::kScored) {
      EXPECT_EQ(scores[d].score, file.scores[d]);
      continue;
    }
    EXPECT_LE(std::abs(scores[d].score - file.scores[d]), file.bounds[d]);
    if (file.return_matches) ExpectMatches(file, group, d);
  }
}

TEST(CasesTest, TheReferenceGivesTheRightAnswersAndBounds) {
  const std::vector<std::string> names = CaseNames(kCases);
  ASSERT_GE(names.size(), 26u);
  ReferenceScorer scorer;
  for (const std::string& name : names) {
    const CaseFile file = ReadCase(kCases, name);
    ExpectRightAnswers(scorer, file);
    const auto results = ReferenceScores(file.View());
    for (size_t d = 0; d < results.size(); ++d) {
      EXPECT_NEAR(results[d].bound, file.bounds[d], file.bounds[d] * 1e-9) << name;
      if (results[d].status != DocumentStatus::kScored) continue;
      EXPECT_NEAR(results[d].score, file.scores[d], file.bounds[d] * 1e-6) << name;
    }
  }
}

class CpuCasesTest : public CpuIsaTest {};

TEST_P(CpuCasesTest, GivesTheRightAnswers) {
  for (const std::string& name : CaseNames(kCases)) {
    ExpectRightAnswers(*scorer_, ReadCase(kCases, name));
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuCasesTest, ::testing::ValuesIn(CompiledIsaNames()), IsaTestName);

}  // namespace
}  // namespace maxsimd
