#include "client/rerank_client.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "client/result_merger.h"
#include "tests/client/fake_server.h"
#include "tests/client/sample_input.h"

namespace maxsimd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Time that only moves when the client sleeps.
class FakeTime {
 public:
  ClientEnvironment Environment() {
    return {.now = [this] { return now_; },
            .sleep =
                [this](absl::Duration delay) {
                  sleeps_.push_back(delay);
                  now_ += delay;
                },
            .chance = [] { return 0.5; }};
  }
  const std::vector<absl::Duration>& sleeps() const { return sleeps_; }

 private:
  absl::Time now_ = absl::UnixEpoch();
  std::vector<absl::Duration> sleeps_;
};

class RerankClientTest : public ::testing::Test {
 protected:
  static v1::Query QueryOf(const RerankInput& input) {
    v1::Query query;
    query.mutable_tokens()->set_element_type(input.query.element_type);
    query.mutable_tokens()->set_dim(input.query.dim);
    query.mutable_tokens()->set_data(std::string(input.query.data));
    for (float weight : input.weights) query.add_token_weights(weight);
    return query;
  }

  static std::vector<v1::ScoredDocument> Expected(const RerankInput& input) {
    v1::Documents documents;
    documents.mutable_tokens()->set_element_type(input.documents.element_type);
    documents.mutable_tokens()->set_dim(input.documents.dim);
    documents.mutable_tokens()->set_data(std::string(input.documents.data));
    for (uint32_t length : input.lengths) documents.add_lengths(length);
    for (uint64_t offset : input.offsets) documents.add_offsets(offset);
    for (const std::string& id : input.ids) documents.add_ids(id);
    return PlainScores(QueryOf(input), documents, input.options);
  }

  void ExpectRightAnswer(const RerankInput& input) {
    const auto result = client_.Rerank(input, {});
    ASSERT_TRUE(result.ok()) << result.status();
    const std::vector<v1::ScoredDocument> expected = Expected(input);
    ASSERT_EQ(result->documents.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(result->documents[i].SerializeAsString(), expected[i].SerializeAsString())
          << result->documents[i].ShortDebugString() << " for " << expected[i].ShortDebugString();
    }
    EXPECT_EQ(result->summary.documents(), expected.size());
  }

  absl::Status RerankStatus(const RerankInput& input, const CallOptions& options = {}) {
    return client_.Rerank(input, options).status();
  }

  static Misbehaviour Refusal(grpc::StatusCode code, std::optional<std::string> pushback = {}) {
    return {.status = grpc::Status(code, "refused"), .pushback = std::move(pushback)};
  }

  FakeServer server_;
  FakeTime time_;
  RerankClient client_{server_.channel(), RetryPolicy{}, time_.Environment()};
};

TEST_F(RerankClientTest, ScoresASmallSetInOneUnaryCall) {
  SampleInput sample(4, {3, 0, 7, 1}, 8, 1);
  sample.weights = {1.0f, -0.5f, 0.0f, 2.0f};
  sample.input.weights = sample.weights;
  sample.input.options.set_return_matches(true);
  ExpectRightAnswer(sample.input);
  ASSERT_EQ(server_.seen_calls().size(), 1u);
  EXPECT_FALSE(server_.seen_calls()[0].stream);
}

TEST_F(RerankClientTest, AnswersForNoDocuments) {
  SampleInput sample(4, {}, 8, 1);
  ExpectRightAnswer(sample.input);
}

TEST_F(RerankClientTest, StreamsABigSetInChunksWithinTheLimits) {
  v1::Limits limits;
  limits.set_max_stream_message_bytes(30'000);
  limits.set_max_message_bytes(200'000);
  limits.set_max_documents_per_message(7);
  server_.set_limits(limits);
  SampleInput sample(4, std::vector<uint32_t>(100, 20), 16, 2);  // 1,280 bytes each.
  ExpectRightAnswer(sample.input);
  ASSERT_EQ(server_.seen_calls().size(), 1u);
  const SeenCall call = server_.seen_calls()[0];
  EXPECT_TRUE(call.stream);
  EXPECT_EQ(call.messages.size(), 15u);
  for (size_t bytes : call.message_bytes) EXPECT_LE(bytes, 30'000u);
}

TEST_F(RerankClientTest, StreamsEmbeddingsInPlaceWhileItHoldsTheirOwner) {
  auto sample = std::make_shared<SampleInput>(4, std::vector<uint32_t>(40, 700), 16, 3);
  RerankInput input = sample->input;  // 1.8 MB.
  input.owner = sample;
  ExpectRightAnswer(input);
  EXPECT_TRUE(server_.seen_calls()[0].stream);
}

TEST_F(RerankClientTest, RebasesOverlappingDocumentsInEachChunk) {
  v1::Limits limits;
  limits.set_max_stream_message_bytes(5'000);
  server_.set_limits(limits);
  SampleInput sample(4, {100}, 16, 4);
  sample.lengths.assign(40, 20);
  for (uint64_t i = 0; i < 40; ++i) sample.offsets.push_back((i * 37) % 80);
  sample.input.lengths = sample.lengths;
  sample.input.offsets = sample.offsets;
  sample.input.ids = {};
  ExpectRightAnswer(sample.input);
  EXPECT_GT(server_.seen_calls()[0].messages.size(), 1u);
}

TEST_F(RerankClientTest, RanksTheBestOfSeveralCallsTogether) {
  v1::Limits limits;
  limits.set_max_documents_per_stream(9);
  server_.set_limits(limits);
  SampleInput sample(4, std::vector<uint32_t>(25, 3), 8, 5);
  sample.input.options.set_top_k(5);
  const auto result = client_.Rerank(sample.input, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(server_.seen_calls().size(), 3u);
  std::vector<v1::ScoredDocument> expected = Expected(sample.input);
  std::sort(expected.begin(), expected.end(), RanksBefore);
  ASSERT_EQ(result->documents.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(result->documents[i].index(), expected[i].index());
    EXPECT_EQ(result->documents[i].id(), expected[i].id());
  }
  EXPECT_EQ(result->summary.documents(), 25u);
  EXPECT_EQ(result->summary.timings().batches(), 3u);
  EXPECT_EQ(result->summary.timings().total().seconds(), 2);
}

TEST_F(RerankClientTest, AsksForTheLimitsOnce) {
  SampleInput sample(4, {3}, 8, 1);
  ExpectRightAnswer(sample.input);
  ExpectRightAnswer(sample.input);
  EXPECT_EQ(server_.info_calls(), 1);
}

TEST_F(RerankClientTest, RefusesADocumentOverALimitBeforeTheWire) {
  v1::Limits limits;
  limits.set_max_document_tokens(5);
  server_.set_limits(limits);
  SampleInput sample(4, {3, 6}, 8, 1);
  const absl::Status status = RerankStatus(sample.input);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_document_tokens = 5"));
  EXPECT_TRUE(server_.seen_calls().empty());
}

TEST_F(RerankClientTest, RefusesSizesThatContradictEachOther) {
  SampleInput sample(4, {3, 6}, 8, 1);
  const std::vector<uint32_t> lengths = {3, 7};
  RerankInput input = sample.input;
  input.lengths = lengths;
  EXPECT_THAT(std::string(RerankStatus(input).message()), HasSubstr("lengths"));
  input = sample.input;
  const std::vector<uint64_t> offsets = {0, 4};
  input.offsets = offsets;
  EXPECT_THAT(std::string(RerankStatus(input).message()), HasSubstr("offsets"));
  input = sample.input;
  input.ids = input.ids.first(1);
  EXPECT_THAT(std::string(RerankStatus(input).message()), HasSubstr("ids"));
  input = sample.input;
  input.query.data.remove_suffix(1);
  EXPECT_EQ(RerankStatus(input).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_.info_calls(), 0);
}

TEST_F(RerankClientTest, ComesBackWhenAnOverloadedServerSays) {
  server_.Misbehave({Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "250"),
                     Refusal(grpc::StatusCode::UNAVAILABLE, "0"),
                     Refusal(grpc::StatusCode::UNAVAILABLE)});
  SampleInput sample(4, {3, 6}, 8, 1);
  ExpectRightAnswer(sample.input);
  EXPECT_EQ(server_.seen_calls().size(), 4u);
  // The third wait is the client's own: half of 100 ms * 2^2.
  EXPECT_THAT(time_.sleeps(),
              ElementsAre(absl::Milliseconds(250), absl::ZeroDuration(), absl::Milliseconds(200)));
}

TEST_F(RerankClientTest, RepeatsAStreamThatFailedHalfWayFromItsStart) {
  v1::Limits limits;
  limits.set_max_documents_per_message(4);
  server_.set_limits(limits);
  Misbehaviour half_way = Refusal(grpc::StatusCode::UNAVAILABLE);
  half_way.results_before = 5;
  Misbehaviour unread = Refusal(grpc::StatusCode::UNAVAILABLE);
  unread.before_reading = true;
  server_.Misbehave({half_way, unread});
  SampleInput sample(4, std::vector<uint32_t>(20, 3), 8, 1);
  ExpectRightAnswer(sample.input);
  EXPECT_EQ(time_.sleeps().size(), 2u);
}

TEST_F(RerankClientTest, DoesNotComeBackWhereItIsNotWelcome) {
  SampleInput sample(4, {3, 6}, 8, 1);
  for (const auto& refusal :
       {Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "-1"),
        Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED), Refusal(grpc::StatusCode::UNAVAILABLE, "-1"),
        Refusal(grpc::StatusCode::UNAVAILABLE, "soon"), Refusal(grpc::StatusCode::INVALID_ARGUMENT),
        Refusal(grpc::StatusCode::INTERNAL), Refusal(grpc::StatusCode::UNAUTHENTICATED)}) {
    server_.Misbehave({refusal});
    const absl::Status status = RerankStatus(sample.input);
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(refusal.status.error_code()));
    EXPECT_EQ(status.message(), "refused");
  }
  EXPECT_TRUE(time_.sleeps().empty());
}

TEST_F(RerankClientTest, GivesUpAfterTheLastAttempt) {
  server_.Misbehave(std::vector<Misbehaviour>(10, Refusal(grpc::StatusCode::UNAVAILABLE)));
  SampleInput sample(4, {3, 6}, 8, 1);
  EXPECT_EQ(RerankStatus(sample.input).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_.seen_calls().size(), 5u);
}

TEST_F(RerankClientTest, DoesNotWaitBeyondTheDeadline) {
  server_.Misbehave({Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "60000")});
  SampleInput sample(4, {3, 6}, 8, 1);
  const absl::Status status = RerankStatus(sample.input, {.timeout = absl::Seconds(60)});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(time_.sleeps().empty());
}

TEST_F(RerankClientTest, EndsAtTheDeadlineWhereTheServerHangs) {
  server_.Misbehave({{.status = {}, .pushback = {}, .hang = true}});
  SampleInput sample(4, {3, 6}, 8, 1);
  EXPECT_EQ(RerankStatus(sample.input, {.timeout = absl::Milliseconds(200)}).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RerankClientTest, RepeatsTheQuestionForLimits) {
  server_.set_info_misbehaviour({Refusal(grpc::StatusCode::UNAVAILABLE, "7")});
  SampleInput sample(4, {3, 6}, 8, 1);
  ExpectRightAnswer(sample.input);
  EXPECT_THAT(time_.sleeps(), ElementsAre(absl::Milliseconds(7)));
}

TEST_F(RerankClientTest, FindsOutAServerThatAnswersWrongly) {
  SampleInput sample(4, {3, 6, 2}, 8, 1);
  const auto message = [&](const Misbehaviour& how) {
    server_.Misbehave({how});
    const absl::Status status = RerankStatus(sample.input);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  };
  Misbehaviour how;
  how.drop_last = true;
  EXPECT_THAT(message(how), HasSubstr("returned 2 documents, but 3"));
  how = {};
  how.repeat_last = true;
  EXPECT_THAT(message(how), HasSubstr("document 2 twice"));
  how = {};
  how.unknown_index = true;
  EXPECT_THAT(message(how), HasSubstr("document 1000000"));
  how = {};
  how.no_summary = true;
  EXPECT_THAT(message(how), HasSubstr("summary"));
}

TEST_F(RerankClientTest, ServesManyThreadsAtOnce) {
  SampleInput sample(4, std::vector<uint32_t>(50, 10), 8, 6);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      RerankClient client(server_.channel());
      const auto result = client.Rerank(sample.input, {});
      if (result.ok() && result->documents.size() == 50) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST_F(RerankClientTest, TellsWhatTheServerIs) {
  const auto info = client_.Info({});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->backend(), "fake");
}

TEST_F(RerankClientTest, TellsHealthByService) {
  server_.set_serving(false);
  EXPECT_EQ(*client_.Health("", {}), ServingStatus::kNotServing);
  server_.set_serving(true);
  EXPECT_EQ(*client_.Health("", {}), ServingStatus::kServing);
  EXPECT_EQ(client_.Health("nobody", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RerankClientTest, SaysUnavailableWhereNobodyListens) {
  RerankClient client(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()),
                      RetryPolicy{.max_attempts = 2}, time_.Environment());
  SampleInput sample(4, {3}, 8, 1);
  EXPECT_EQ(client.Rerank(sample.input, {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(time_.sleeps().size(), 1u);
}

}  // namespace
}  // namespace maxsimd
