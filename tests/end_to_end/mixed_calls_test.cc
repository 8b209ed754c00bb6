// Many different calls at once: each gets what it gets alone, to the last bit, and embedding bytes
// are copied once.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "tests/testing/patience.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

// Types, dims, lengths and options mixed; few distinct queries, so that calls share groups.
v1::RerankRequest MakeMixedRequest(std::mt19937& random) {
  Shape shape;
  shape.element_type = static_cast<v1::ElementType>(1 + random() % 3);
  shape.dim = std::vector<uint32_t>{1, 7, 16, 48, 128}[random() % 5];
  shape.query_tokens = 1 + random() % 9;
  shape.seed = 1 + random() % 3;
  shape.lengths.resize(random() % 40);
  for (uint32_t& length : shape.lengths) length = random() % 5 == 0 ? 0 : random() % 50;
  v1::RerankRequest request = MakeRequest(shape);
  v1::RerankOptions& options = *request.mutable_options();
  options.set_top_k(random() % 3 == 0 ? 1 + random() % 20 : 0);
  options.set_normalize(random() % 2 == 0);
  options.set_return_matches(random() % 2 == 0);
  if (random() % 2 == 0) {
    for (uint32_t i = 0; i < shape.query_tokens; ++i) {
      request.mutable_query()->add_token_weights(1 + static_cast<float>(i % 4) / 4);
    }
    options.set_aggregation(v1::AGGREGATION_MEAN);
  }
  return request;
}

std::map<uint32_t, std::string> ByIndex(const Outcome& outcome) {
  std::map<uint32_t, std::string> results;
  for (const v1::ScoredDocument& result : outcome.results) {
    EXPECT_TRUE(results.emplace(result.index(), result.SerializeAsString()).second)
        << result.index() << " came twice";
  }
  return results;
}

TEST(MixedCallsTest, EachCallGetsTheBitsThatItGetsAlone) {
  constexpr int kThreads = 8;
  constexpr int kRequests = 24;
  constexpr int kRounds = MAXSIMD_SANITIZED ? 2 : 6;
  TestServer server;
  std::mt19937 random(11);
  std::vector<v1::RerankRequest> requests;
  std::vector<std::map<uint32_t, std::string>> alone;
  for (int i = 0; i < kRequests; ++i) {
    requests.push_back(MakeMixedRequest(random));
    const Outcome outcome = Exchange(server.channel(), kRerankMethod, {ToBuffer(requests.back())});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    alone.push_back(ByIndex(outcome));
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 mine(thread);
      const auto channel = ConnectTo(server.address());
      for (int call = 0; call < kRounds * kRequests; ++call) {
        const size_t which = mine() % kRequests;
        const bool stream = mine() % 2 == 0;
        const Outcome outcome =
            stream ? Exchange(channel, kRerankStreamMethod,
                              ToSlicedBuffers(CutAnywhere(requests[which], mine), mine))
                   : Exchange(channel, kRerankMethod,
                              {SliceAnywhere(requests[which].SerializeAsString(), mine)});
        EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
        EXPECT_EQ(ByIndex(outcome), alone[which]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(server.BecomesIdle());
}

TEST(MixedCallsTest, CallsThatWaitTogetherShareABatch) {
  TestServer server;
  const v1::RerankRequest request = MakeRequest({});
  server.gate().Hold();
  RawCall first(server.channel(), kRerankMethod);
  ASSERT_TRUE(first.Write(ToBuffer(request)));
  ASSERT_TRUE(server.gate().AwaitHeld(1));
  std::vector<std::unique_ptr<RawCall>> waiting;
  for (int call = 0; call < 5; ++call) {
    waiting.push_back(std::make_unique<RawCall>(server.channel(), kRerankMethod));
    ASSERT_TRUE(waiting.back()->Write(ToBuffer(request)));
  }
  const uint64_t bytes = request.documents().tokens().data().size();
  ASSERT_TRUE(
      Eventually([&] { return server.server().counters().embedding_bytes_copied == 6 * bytes; }));
  server.gate().Release();
  for (const auto& call : waiting) EXPECT_TRUE(call->Finish().status.ok());
  EXPECT_TRUE(first.Finish().status.ok());
  EXPECT_EQ(server.server().counters().batches, 2u);
  EXPECT_EQ(server.server().counters().groups, 2u);
  EXPECT_EQ(server.server().counters().documents, 12u);
}

TEST(MixedCallsTest, EmbeddingBytesAreCopiedExactlyOnce) {
  TestServer server;
  std::mt19937 random(3);
  uint64_t sent = 0;
  for (int call = 0; call < 20; ++call) {
    const v1::RerankRequest request =
        MakeUniformRequest(1 + random() % 60, 1 + random() % 90,
                           {.dim = 1 + static_cast<uint32_t>(random() % 200), .seed = random()});
    sent += request.documents().tokens().data().size();
    const Outcome outcome = call % 2 == 0
                                ? Exchange(server.channel(), kRerankMethod, {ToBuffer(request)})
                                : Exchange(server.channel(), kRerankStreamMethod,
                                           ToSlicedBuffers(CutAnywhere(request, random), random));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  }
  EXPECT_EQ(server.server().counters().embedding_bytes_copied, sent);
}

}  // namespace
}  // namespace maxsimd
