// How streams flow: results before the end, half-closing late, silence, readers that don't read,
// large and empty inputs.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

#include "tests/testing/patience.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

Options IdleAfter(absl::Duration timeout) {
  Options options = TestOptions();
  options.stream_idle_timeout = timeout;
  return options;
}

TEST(StreamTest, ResultsArriveBeforeTheClientHalfCloses) {
  TestServer server;
  RawCall call(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(call.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(call.AwaitResponses(1));
  ASSERT_TRUE(call.Write(StreamChunk(MakeRequest({}))));
  ASSERT_TRUE(call.AwaitResponses(2));
  call.WritesDone();
  const Outcome outcome = call.Finish();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.results.size(), 4u);
  EXPECT_EQ(outcome.summary->documents(), 4u);
  EXPECT_EQ(outcome.summary->timings().batches(), 2u);
}

TEST(StreamTest, AClientThatHalfClosesLateGetsItsSummaryThen) {
  TestServer server;
  RawCall call(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(call.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(call.AwaitResponses(1));
  v1::RerankResponse first;
  ASSERT_TRUE(first.ParseFromString(call.responses().front()));
  EXPECT_FALSE(first.has_summary());
  EXPECT_EQ(server.server().usage().calls, 1u);
  call.WritesDone();
  EXPECT_TRUE(call.Finish().status.ok());
}

TEST(StreamTest, RerankEndsWithoutTheClientsHalfClose) {
  TestServer server;
  RawCall call(server.channel(), kRerankMethod);
  ASSERT_TRUE(call.Write(ToBuffer(MakeRequest({}))));
  EXPECT_TRUE(call.Finish().status.ok());
}

TEST(StreamTest, TopKRanksOverAllChunks) {
  TestServer server;
  v1::RerankRequest request = MakeUniformRequest(300, 2);
  request.mutable_options()->set_top_k(7);
  const Outcome whole = Exchange(server.channel(), kRerankMethod, {ToBuffer(request)});
  std::vector<grpc::ByteBuffer> chunks;
  for (const auto& message : Cut(request, {0, 10, 11, 250})) chunks.push_back(ToBuffer(message));
  const Outcome cut = Exchange(server.channel(), kRerankStreamMethod, chunks);
  ASSERT_TRUE(cut.status.ok()) << cut.status.error_message();
  ASSERT_EQ(cut.results.size(), 7u);
  ASSERT_EQ(whole.results.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(cut.results[i].SerializeAsString(), whole.results[i].SerializeAsString());
    EXPECT_GE(cut.results[i > 0 ? i - 1 : 0].score(), cut.results[i].score());
  }
  EXPECT_EQ(cut.summary->documents(), 300u);
}

TEST(StreamTest, EqualScoresRankByIndex) {
  TestServer server;
  v1::RerankRequest request = MakeUniformRequest(1, 2);
  for (int i = 0; i < 50; ++i) {
    if (i > 0) request.mutable_documents()->add_lengths(2);
    request.mutable_documents()->add_offsets(0);
  }
  request.mutable_options()->set_top_k(5);
  const Outcome outcome = Exchange(server.channel(), kRerankMethod, {ToBuffer(request)});
  ASSERT_EQ(outcome.results.size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(outcome.results[i].index(), i);
}

TEST(StreamTest, AHundredThousandDocumentsInOneMessage) {
  TestServer server;
  const v1::RerankRequest request = MakeUniformRequest(100'000, 1, {.dim = 2});
  const Outcome outcome = Exchange(server.channel(), kRerankMethod, {ToBuffer(request)});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  std::set<uint32_t> indexes;
  for (const v1::ScoredDocument& result : outcome.results) indexes.insert(result.index());
  EXPECT_EQ(outcome.results.size(), 100'000u);
  EXPECT_EQ(indexes.size(), 100'000u);
  EXPECT_LE(outcome.largest_response, size_t{1} << 20);
}

TEST(StreamTest, ResponsesStayUnderAMebibyteWithMatches) {
  TestServer server;
  v1::RerankRequest request = MakeUniformRequest(3'000, 2, {.dim = 4, .query_tokens = 100});
  request.mutable_options()->set_return_matches(true);
  for (const uint32_t top_k : {0, 3'000}) {
    request.mutable_options()->set_top_k(top_k);
    const Outcome outcome = Exchange(server.channel(), kRerankMethod, {ToBuffer(request)});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.results.size(), 3'000u);
    EXPECT_GT(outcome.responses, 2u);
    EXPECT_LE(outcome.largest_response, size_t{1} << 20);
    for (const v1::ScoredDocument& result : outcome.results) {
      ASSERT_EQ(result.matches_size(), 100);
    }
  }
}

TEST(StreamTest, OnlyEmptyDocumentsNeedNoScorer) {
  TestServer server;
  server.gate().Hold();
  v1::RerankRequest request = MakeUniformRequest(5, 0);
  for (const uint32_t top_k : {0, 3}) {
    request.mutable_options()->set_top_k(top_k);
    for (const Outcome& outcome :
         {Exchange(server.channel(), kRerankMethod, {ToBuffer(request)}),
          Exchange(server.channel(), kRerankStreamMethod, {StreamStart(request)})}) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
      ASSERT_EQ(outcome.results.size(), top_k == 0 ? 5u : 3u);
      for (uint32_t i = 0; i < outcome.results.size(); ++i) {
        EXPECT_EQ(outcome.results[i].index(), i);
        EXPECT_EQ(outcome.results[i].status(), v1::DOCUMENT_STATUS_EMPTY);
      }
    }
  }
}

TEST(StreamTest, NoDocumentsAtAllGiveASummary) {
  TestServer server;
  v1::RerankRequest request = MakeRequest({});
  request.clear_documents();
  v1::RerankStreamRequest empty_chunk;
  empty_chunk.mutable_documents();
  for (const Outcome& outcome :
       {Exchange(server.channel(), kRerankMethod, {ToBuffer(request)}),
        Exchange(server.channel(), kRerankStreamMethod,
                 {StreamStart(request), ToBuffer(empty_chunk), ToBuffer(empty_chunk)})}) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.results.size(), 0u);
    EXPECT_EQ(outcome.summary->documents(), 0u);
  }
}

TEST(StreamTest, AStreamOnWhichNothingArrivesEnds) {
  TestServer server(IdleAfter(absl::Milliseconds(100)));
  RawCall silent(server.channel(), kRerankStreamMethod);
  const Outcome never = silent.Finish();
  EXPECT_EQ(never.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  RawCall stopped(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(stopped.Write(StreamStart(MakeRequest({}))));
  const Outcome after_one = stopped.Finish();
  EXPECT_EQ(after_one.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(after_one.results.size(), 2u);
  EXPECT_NE(after_one.status.error_message().find("stream_idle_timeout"), std::string::npos);
  RawCall unary(server.channel(), kRerankMethod);
  EXPECT_EQ(unary.Finish().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(server.BecomesIdle());
}

TEST(StreamTest, WaitingForTheScorerIsNotIdleness) {
  TestServer server(IdleAfter(absl::Milliseconds(50)));
  server.gate().Hold();
  RawCall call(server.channel(), kRerankMethod);
  ASSERT_TRUE(call.Write(ToBuffer(MakeRequest({}))));
  ASSERT_TRUE(server.gate().AwaitHeld(1));
  // A call that does nothing is ended meanwhile, two time-outs long.
  for (int timeout = 0; timeout < 2; ++timeout) {
    RawCall idle(server.channel(), kRerankStreamMethod);
    EXPECT_EQ(idle.Finish().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  }
  server.gate().Release();
  EXPECT_TRUE(call.Finish().status.ok());
}

// Also where the client could send more, but wants its scores first.
TEST(StreamTest, WaitingForScoresWithTheStreamOpenIsNotIdleness) {
  TestServer server(IdleAfter(absl::Milliseconds(50)));
  server.gate().Hold();
  RawCall call(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(call.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(server.gate().AwaitHeld(1));
  for (int timeout = 0; timeout < 2; ++timeout) {
    RawCall idle(server.channel(), kRerankStreamMethod);
    EXPECT_EQ(idle.Finish().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  }
  server.gate().Release();
  EXPECT_TRUE(call.AwaitResponses(1));
}

// 45 MB of results that nobody reads.
TEST(StreamTest, ASlowReaderHoldsLittleHindersNobodyAndEnds) {
  TestServer server(IdleAfter(absl::Seconds(MAXSIMD_SANITIZED ? 4 : 1)));
  v1::RerankRequest request = MakeUniformRequest(500, 1, {.dim = 1, .query_tokens = 800});
  request.mutable_options()->set_return_matches(true);
  const auto channel = ConnectTo(server.address());
  RawCall slow(channel, kRerankStreamMethod);
  ASSERT_TRUE(slow.Write(StreamStart(request)));
  for (int chunk = 0; chunk < 15; ++chunk) ASSERT_TRUE(slow.Write(StreamChunk(request)));
  ASSERT_TRUE(Eventually([&] { return server.server().counters().documents >= 500; }));
  uint64_t most = 0;
  // Others are served until the slow one is gone.
  ASSERT_TRUE(Eventually([&] {
    most = std::max(most, server.server().usage().bytes);
    const Outcome other = Exchange(server.channel(), kRerankMethod, {ToBuffer(MakeRequest({}))});
    EXPECT_TRUE(other.status.ok()) << other.status.error_message();
    return server.server().lanes() == 0;
  }));
  // Results unsent, results scored, and room for the next message: about 4 MiB of each.
  EXPECT_GT(most, uint64_t{1} << 20);
  EXPECT_LE(most, uint64_t{16} << 20);
  const Outcome outcome = slow.Finish();
  EXPECT_EQ(outcome.status.error_code(), StatusCode::DEADLINE_EXCEEDED)
      << outcome.status.error_message();
  EXPECT_TRUE(server.BecomesIdle());
}

}  // namespace
}  // namespace maxsimd
