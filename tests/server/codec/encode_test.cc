#include "server/codec/encode.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "google/protobuf/util/time_util.h"
#include <gtest/gtest.h>

#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Each message as the generated parser reads it; its own bytes are the shortest, and so must ours
// be.
std::vector<v1::RerankResponse> TakeParsed(ResponseEncoder* encoder) {
  std::vector<v1::RerankResponse> responses;
  for (const std::string& bytes : encoder->Take()) {
    EXPECT_LE(bytes.size(), kMaxResponseBytes);
    v1::RerankResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    EXPECT_EQ(response.SerializeAsString(), bytes);
    responses.push_back(response);
  }
  EXPECT_TRUE(encoder->empty());
  return responses;
}

void ExpectDocument(const v1::ScoredDocument& document, uint32_t index, float score,
                    v1::DocumentStatus status, const std::string& id) {
  EXPECT_EQ(document.index(), index);
  EXPECT_EQ(document.score(), score);
  EXPECT_EQ(std::signbit(document.score()), std::signbit(score));
  EXPECT_EQ(document.status(), status);
  EXPECT_EQ(document.id(), id);
}

TEST(ResponseEncoderTest, StartsEmpty) {
  ResponseEncoder encoder;
  EXPECT_TRUE(encoder.empty());
  EXPECT_TRUE(encoder.Take().empty());
}

TEST(ResponseEncoderTest, WritesResultsAsTheGeneratedParserReadsThem) {
  ResponseEncoder encoder;
  encoder.Add(0, {.score = 1.5, .status = DocumentStatus::kScored}, "", {});
  encoder.Add(127, {.score = 0, .status = DocumentStatus::kScored}, "a", {});
  encoder.Add(128, {.score = -0.0f, .status = DocumentStatus::kScored}, "\xC3\xA9", {});
  encoder.Add(~uint32_t{0}, {.score = -3, .status = DocumentStatus::kScored}, std::string(256, 'x'),
              {});
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 1u);
  ASSERT_EQ(responses[0].results_size(), 4);
  EXPECT_FALSE(responses[0].has_summary());
  ExpectDocument(responses[0].results(0), 0, 1.5, v1::DOCUMENT_STATUS_SCORED, "");
  ExpectDocument(responses[0].results(1), 127, 0, v1::DOCUMENT_STATUS_SCORED, "a");
  ExpectDocument(responses[0].results(2), 128, -0.0f, v1::DOCUMENT_STATUS_SCORED, "\xC3\xA9");
  ExpectDocument(responses[0].results(3), ~uint32_t{0}, -3, v1::DOCUMENT_STATUS_SCORED,
                 std::string(256, 'x'));
}

TEST(ResponseEncoderTest, GivesWhatIsNotScoredMinusInfinityAndNoMatches) {
  ResponseEncoder encoder;
  const std::vector<TokenMatch> matches(2);
  encoder.Add(1, {.score = 7, .status = DocumentStatus::kEmpty}, "e", matches);
  encoder.Add(2, {.score = 7, .status = DocumentStatus::kNonFinite}, "n", matches);
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 1u);
  ASSERT_EQ(responses[0].results_size(), 2);
  ExpectDocument(responses[0].results(0), 1, -kInfinity, v1::DOCUMENT_STATUS_EMPTY, "e");
  ExpectDocument(responses[0].results(1), 2, -kInfinity, v1::DOCUMENT_STATUS_NON_FINITE, "n");
  EXPECT_EQ(responses[0].results(0).matches_size(), 0);
  EXPECT_EQ(responses[0].results(1).matches_size(), 0);
}

TEST(ResponseEncoderTest, WritesOneMatchPerQueryTokenAlsoWhereAllIsZero) {
  ResponseEncoder encoder;
  const std::vector<TokenMatch> matches = {{0, 0}, {0, -1.5}, {300, 0}, {65535, 2}, {1, -0.0f}};
  encoder.Add(3, {.score = 1, .status = DocumentStatus::kScored}, "id", matches);
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 1u);
  const v1::ScoredDocument& document = responses[0].results(0);
  ASSERT_EQ(document.matches_size(), static_cast<int>(matches.size()));
  for (size_t i = 0; i < matches.size(); ++i) {
    const v1::TokenMatch& match = document.matches(static_cast<int>(i));
    EXPECT_EQ(match.document_token(), matches[i].document_token);
    EXPECT_EQ(match.similarity(), matches[i].similarity);
    EXPECT_EQ(std::signbit(match.similarity()), std::signbit(matches[i].similarity));
  }
}

TEST(ResponseEncoderTest, SplitsAtOneMebibyteAndFillsEachMessage) {
  ResponseEncoder encoder;
  constexpr uint32_t kDocuments = 10'000;
  const std::string id(250, 'i');
  for (uint32_t i = 0; i < kDocuments; ++i) {
    encoder.Add(i, {.score = 1, .status = DocumentStatus::kScored}, id, {});
  }
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 3u);  // 10,000 results of about 270 bytes.
  uint32_t next = 0;
  for (size_t i = 0; i < responses.size(); ++i) {
    if (i + 1 < responses.size()) {
      EXPECT_GT(responses[i].ByteSizeLong() + 270, kMaxResponseBytes);
    }
    for (const v1::ScoredDocument& document : responses[i].results()) {
      EXPECT_EQ(document.index(), next++);
    }
  }
  EXPECT_EQ(next, kDocuments);
}

TEST(ResponseEncoderTest, SplitsToTheByte) {
  // 1,023 results of 1,024 bytes leave 1,024 bytes for a last one.
  const auto add = [](ResponseEncoder* encoder, size_t size, uint32_t index) {
    // Tag and length 3, index 3, score 5, status 2, id's tag and length 3.
    encoder->Add(index, {.score = 1, .status = DocumentStatus::kScored},
                 std::string(size - 16, 'i'), {});
  };
  for (const size_t last : {size_t{1024}, size_t{1025}}) {
    ResponseEncoder encoder;
    for (uint32_t i = 0; i < 1023; ++i) add(&encoder, 1024, 200 + i);
    add(&encoder, last, 2000);
    const std::vector<std::string> messages = encoder.Take();
    ASSERT_EQ(messages.size(), last == 1024 ? 1u : 2u);
    EXPECT_EQ(messages[0].size(), last == 1024 ? kMaxResponseBytes : kMaxResponseBytes - 1024);
  }
}

TEST(ResponseEncoderTest, LargestResultFitsOneMessage) {
  ResponseEncoder encoder;
  const std::vector<TokenMatch> matches(4096, {.document_token = 65535, .similarity = 1});
  encoder.Add(~uint32_t{0}, {.score = 1, .status = DocumentStatus::kScored}, std::string(256, 'i'),
              matches);
  EXPECT_EQ(TakeParsed(&encoder).size(), 1u);
}

Summary SomeSummary() {
  Summary summary;
  summary.documents = 3;
  summary.document_tokens = uint64_t{1} << 40;
  summary.total = absl::Seconds(2) + absl::Nanoseconds(5);
  summary.receive = absl::Milliseconds(1500);
  summary.queue = absl::ZeroDuration();
  summary.pack = -absl::Seconds(1);  // A clock that went back.
  summary.upload = absl::InfiniteDuration();
  summary.compute = absl::Nanoseconds(999'999'999);
  summary.batches = 2;
  return summary;
}

TEST(ResponseEncoderTest, EndsTheLastMessageWithTheSummary) {
  ResponseEncoder encoder;
  encoder.Add(0, {.score = 1, .status = DocumentStatus::kScored}, "", {});
  encoder.AddSummary(SomeSummary());
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_EQ(responses[0].results_size(), 1);
  const v1::RerankSummary& summary = responses[0].summary();
  EXPECT_EQ(summary.documents(), 3u);
  EXPECT_EQ(summary.document_tokens(), uint64_t{1} << 40);
  const v1::Timings& timings = summary.timings();
  EXPECT_EQ(timings.total().seconds(), 2);
  EXPECT_EQ(timings.total().nanos(), 5);
  EXPECT_EQ(timings.receive().seconds(), 1);
  EXPECT_EQ(timings.receive().nanos(), 500'000'000);
  EXPECT_TRUE(timings.has_queue());
  EXPECT_EQ(timings.queue().seconds() + timings.queue().nanos(), 0);
  EXPECT_EQ(timings.pack().seconds() + timings.pack().nanos(), 0);
  EXPECT_EQ(timings.upload().seconds(), google::protobuf::util::TimeUtil::kDurationMaxSeconds);
  EXPECT_EQ(timings.upload().nanos(), 0);
  EXPECT_EQ(timings.compute().seconds(), 0);
  EXPECT_EQ(timings.compute().nanos(), 999'999'999);
  EXPECT_EQ(timings.batches(), 2u);
}

TEST(ResponseEncoderTest, SummaryAloneIsAMessage) {
  ResponseEncoder encoder;
  encoder.AddSummary({});
  EXPECT_FALSE(encoder.empty());
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_TRUE(responses[0].has_summary());
  EXPECT_TRUE(responses[0].summary().has_timings());
  EXPECT_EQ(responses[0].results_size(), 0);
}

TEST(ResponseEncoderTest, SummaryStartsAMessageWhereTheLastIsFull) {
  ResponseEncoder encoder;
  encoder.Add(0, {.score = 1, .status = DocumentStatus::kScored},
              std::string(kMaxResponseBytes - 20, 'i'), {});
  encoder.AddSummary(SomeSummary());
  const std::vector<v1::RerankResponse> responses = TakeParsed(&encoder);
  ASSERT_EQ(responses.size(), 2u);
  EXPECT_FALSE(responses[0].has_summary());
  EXPECT_TRUE(responses[1].has_summary());
}

}  // namespace
}  // namespace maxsimd
