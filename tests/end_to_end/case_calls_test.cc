// The calls of tests/cases/, whose answers are known, over both RPCs.
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/testing/case_files.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

const std::string kCases = absl::StrCat(MAXSIMD_TEST_DATA, "/cases");

// A similarity may err by this, and where two rows are closer either may be the match.
// Wider than the README's: its max_j sum_k |q_ik * d_jk| is no part of the file.
constexpr double kSimilarityError = 1e-4;

class CaseCallsTest : public ::testing::TestWithParam<std::string> {
 protected:
  const CaseFile case_ = ReadCase(kCases, GetParam());
  const v1::RerankRequest request_ = ToRequest(case_);
  TestServer server_;
  std::mt19937 random_{7};
};

v1::DocumentStatus ToProto(DocumentStatus status) {
  switch (status) {
    case DocumentStatus::kScored:
      return v1::DOCUMENT_STATUS_SCORED;
    case DocumentStatus::kEmpty:
      return v1::DOCUMENT_STATUS_EMPTY;
    case DocumentStatus::kNonFinite:
      break;
  }
  return v1::DOCUMENT_STATUS_NON_FINITE;
}

void ExpectMatches(const CaseFile& expected, const v1::ScoredDocument& result) {
  const bool wanted = expected.return_matches && result.status() == v1::DOCUMENT_STATUS_SCORED;
  ASSERT_EQ(result.matches_size(), wanted ? static_cast<int>(expected.query_tokens) : 0);
  for (int i = 0; i < result.matches_size(); ++i) {
    const CaseMatch& match = expected.matches[result.index()][i];
    EXPECT_NEAR(result.matches(i).similarity(), match.similarity,
                kSimilarityError * (1 + std::abs(match.similarity)));
    EXPECT_EQ(result.matches(i).document_token(), match.document_token) << "query token " << i;
  }
}

void ExpectRight(const CaseFile& expected, const v1::ScoredDocument& result) {
  const uint32_t index = result.index();
  SCOPED_TRACE(absl::StrCat("document ", index));
  ASSERT_LT(index, expected.documents.size());
  EXPECT_EQ(result.status(), ToProto(expected.statuses[index]));
  EXPECT_EQ(result.id(), absl::StrCat(expected.name, " ", index));
  if (result.status() == v1::DOCUMENT_STATUS_SCORED) {
    EXPECT_LE(std::abs(result.score() - expected.scores[index]), expected.bounds[index]);
  } else {
    EXPECT_EQ(result.score(), -std::numeric_limits<float>::infinity());
  }
  ExpectMatches(expected, result);
}

// All that a call answers, in the order of the documents, to the last bit.
std::string Bits(Outcome outcome) {
  std::sort(outcome.results.begin(), outcome.results.end(),
            [](const auto& a, const auto& b) { return a.index() < b.index(); });
  std::string bits;
  for (const v1::ScoredDocument& result : outcome.results) bits += result.SerializeAsString();
  return bits;
}

void ExpectRight(const CaseFile& expected, const Outcome& outcome) {
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  for (const v1::ScoredDocument& result : outcome.results) ExpectRight(expected, result);
  uint64_t tokens = 0;
  for (const DocumentRows& document : expected.documents) tokens += document.length;
  EXPECT_EQ(outcome.summary->documents(), expected.documents.size());
  EXPECT_EQ(outcome.summary->document_tokens(), tokens);
  std::vector<uint32_t> indexes;
  for (const v1::ScoredDocument& result : outcome.results) indexes.push_back(result.index());
  if (expected.top_k > 0) {
    EXPECT_EQ(indexes, expected.ranking);
    return;
  }
  std::sort(indexes.begin(), indexes.end());
  ASSERT_EQ(indexes.size(), expected.documents.size());
  for (uint32_t i = 0; i < indexes.size(); ++i) EXPECT_EQ(indexes[i], i);
}

TEST_P(CaseCallsTest, RerankIsWithinTheBound) {
  ExpectRight(case_, Exchange(server_.channel(), kRerankMethod, {ToBuffer(request_)}));
}

TEST_P(CaseCallsTest, RerankStreamIsTheSameToTheLastBitHoweverItIsCutAndSliced) {
  const Outcome whole = Exchange(server_.channel(), kRerankMethod, {ToBuffer(request_)});
  ASSERT_TRUE(whole.status.ok()) << whole.status.error_message();
  for (int repetition = 0; repetition < 8; ++repetition) {
    SCOPED_TRACE(repetition);
    const Outcome cut = Exchange(server_.channel(), kRerankStreamMethod,
                                 ToSlicedBuffers(CutAnywhere(request_, random_), random_));
    ExpectRight(case_, cut);
    EXPECT_EQ(Bits(cut), Bits(whole));
  }
}

TEST_P(CaseCallsTest, TopKAndMatchesNeverChangeAScore) {
  const Outcome plain = Exchange(server_.channel(), kRerankMethod, {ToBuffer(request_)});
  v1::RerankRequest other = request_;
  other.mutable_options()->set_top_k(1000);
  other.mutable_options()->set_return_matches(!request_.options().return_matches());
  const Outcome ranked = Exchange(server_.channel(), kRerankMethod, {ToBuffer(other)});
  ASSERT_TRUE(ranked.status.ok()) << ranked.status.error_message();
  std::vector<float> scores(case_.documents.size());
  for (const v1::ScoredDocument& result : ranked.results) scores[result.index()] = result.score();
  for (const v1::ScoredDocument& result : plain.results) {
    EXPECT_EQ(std::bit_cast<uint32_t>(result.score()),
              std::bit_cast<uint32_t>(scores[result.index()]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseCallsTest, ::testing::ValuesIn(CaseNames(kCases)),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace maxsimd
