// Calls that end early: cancelled, expired, disconnected or silent, at each stage of their life.
//
// After each the server has let go of all that the call held, and serves the next one.
#include <memory>
#include <string>
#include <tuple>

#include "gtest/gtest.h"

#include "tests/testing/breakable_connection.h"
#include "tests/testing/patience.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

// About 12 MB of results: more than the transport's windows and the server's own bound hold.
v1::RerankRequest MakeRequestOfManyResults() {
  v1::RerankRequest request = MakeUniformRequest(3'000, 1, {.dim = 1, .query_tokens = 500});
  request.mutable_options()->set_return_matches(true);
  return request;
}

// How far a call has come when it ends.
enum class Stage { kBeforeAMessage, kMidUpload, kQueued, kScoring, kWritingResults };

std::string StageName(Stage stage) {
  switch (stage) {
    case Stage::kBeforeAMessage:
      return "BeforeAMessage";
    case Stage::kMidUpload:
      return "MidUpload";
    case Stage::kQueued:
      return "Queued";
    case Stage::kScoring:
      return "Scoring";
    case Stage::kWritingResults:
      return "WritingResults";
  }
  return "";
}

class CallLifeTest : public ::testing::TestWithParam<std::tuple<Stage, bool>> {
 protected:
  Stage stage() const { return std::get<0>(GetParam()); }
  std::string method() const {
    return std::get<1>(GetParam()) ? kRerankStreamMethod : kRerankMethod;
  }
  grpc::ByteBuffer First(const v1::RerankRequest& request) const {
    return std::get<1>(GetParam()) ? StreamStart(request) : ToBuffer(request);
  }

  // Brings a call to its stage; false if it ended before.
  bool Bring(RawCall& call) {
    switch (stage()) {
      case Stage::kBeforeAMessage:
        return Eventually([this] { return server_.server().usage().calls == 1; });
      case Stage::kMidUpload:
        server_.gate().Hold();
        return BringMidUpload(call);
      case Stage::kQueued:
        return BringQueued(call);
      case Stage::kScoring:
        server_.gate().Hold();
        return call.Write(First(MakeRequest({}))) && server_.gate().AwaitHeld(1);
      case Stage::kWritingResults:
        // The first are on their way; nobody reads them.
        return call.Write(First(MakeRequestOfManyResults())) &&
               Eventually([this] { return server_.server().counters().documents > 0; });
    }
    return false;
  }

  // Sends more than is read while nothing is scored: the last message stalls on its way.  (Rerank's
  // only message is just begun.)
  bool BringMidUpload(RawCall& call) {
    // Of which a packed buffer holds one: the first is scored, the second is copied, two wait.
    const v1::RerankRequest large = MakeUniformRequest(1, 60'000, {.dim = 32});
    if (method() == kRerankMethod) {
      call.StartWrite(ToBuffer(large));
      return Eventually([this] { return server_.server().usage().calls == 1; });
    }
    if (!call.Write(StreamStart(large)) || !server_.gate().AwaitHeld(1)) return false;
    for (int chunk = 0; chunk < 3; ++chunk) {
      if (!call.Write(StreamChunk(large))) return false;
    }
    call.StartWrite(StreamChunk(large));
    return true;
  }

  // Copied and ready, behind another call's batch that the scorer holds.
  bool BringQueued(RawCall& call) {
    server_.gate().Hold();
    blocker_ = std::make_unique<RawCall>(server_.channel(), kRerankMethod);
    return blocker_->Write(ToBuffer(MakeRequest({.seed = 9}))) && server_.gate().AwaitHeld(1) &&
           call.Write(First(MakeRequest({}))) &&
           Eventually([this] { return copied() == 2 * kDocumentBytes; });
  }

  size_t Others() const { return blocker_ == nullptr ? 0 : 1; }
  uint64_t copied() { return server_.server().counters().embedding_bytes_copied; }

  void ExpectNothingIsLeft() {
    server_.gate().Release();
    if (blocker_ != nullptr) {
      EXPECT_TRUE(blocker_->Finish().status.ok());
      blocker_.reset();
    }
    EXPECT_TRUE(server_.BecomesIdle());
    const Outcome next = Exchange(server_.channel(), kRerankMethod, {ToBuffer(MakeRequest({}))});
    EXPECT_TRUE(next.status.ok()) << next.status.error_message();
  }

  static constexpr uint64_t kDocumentBytes = 8 * 16 * 2;  // Of MakeRequest({}).

  TestServer server_;
  std::unique_ptr<RawCall> blocker_;
};

TEST_P(CallLifeTest, Cancelled) {
  RawCall call(server_.channel(), method());
  ASSERT_TRUE(Bring(call));
  call.Cancel();
  EXPECT_EQ(call.Finish().status.error_code(), StatusCode::CANCELLED);
  // Not only once the scorer lets go: what is queued is dropped at once.
  if (stage() == Stage::kQueued) {
    EXPECT_TRUE(Eventually([this] { return server_.server().lanes() == 1; }));
    EXPECT_TRUE(Eventually([this] { return server_.server().usage().calls == 1; }));
  }
  ExpectNothingIsLeft();
}

TEST_P(CallLifeTest, Disconnected) {
  BreakableConnection connection(server_.address());
  RawCall call(connection.channel(), method());
  ASSERT_TRUE(Bring(call));
  connection.Break();
  ASSERT_TRUE(Eventually([this] { return server_.server().lanes() == Others(); }));
  ExpectNothingIsLeft();
}

TEST_P(CallLifeTest, ItsChannelDestroyed) {
  {
    RawCall call(ConnectTo(server_.address()), method());
    ASSERT_TRUE(Bring(call));
  }
  ExpectNothingIsLeft();
}

TEST_P(CallLifeTest, Expired) {
  // Long enough to come to its stage, as good as always; if not, it must end the same.
  RawCall call(server_.channel(), method(), absl::Milliseconds(MAXSIMD_SANITIZED ? 1500 : 500));
  Bring(call);
  ASSERT_TRUE(Eventually([this] { return server_.server().lanes() == Others(); }));
  EXPECT_EQ(call.Finish().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  ExpectNothingIsLeft();
}

class QueuedCallTest : public CallLifeTest {};

TEST_P(QueuedCallTest, NeverReachesTheScorerOnceItIsGone) {
  RawCall call(server_.channel(), method());
  ASSERT_TRUE(Bring(call));
  call.Cancel();
  EXPECT_EQ(call.Finish().status.error_code(), StatusCode::CANCELLED);
  ASSERT_TRUE(Eventually([this] { return server_.server().usage().calls == 1; }));
  const int batches = server_.gate().batches();
  server_.gate().Release();
  EXPECT_TRUE(blocker_->Finish().status.ok());
  blocker_.reset();
  EXPECT_TRUE(server_.BecomesIdle());
  EXPECT_EQ(server_.gate().batches(), batches);
  EXPECT_EQ(server_.server().counters().documents, 2u);
}

const auto kName = [](const auto& test) {
  return (std::get<1>(test.param) ? "RerankStream" : "Rerank") + StageName(std::get<0>(test.param));
};
INSTANTIATE_TEST_SUITE_P(
    Each, CallLifeTest,
    ::testing::Combine(::testing::Values(Stage::kBeforeAMessage, Stage::kMidUpload, Stage::kQueued,
                                         Stage::kScoring, Stage::kWritingResults),
                       ::testing::Bool()),
    kName);
INSTANTIATE_TEST_SUITE_P(Each, QueuedCallTest,
                         ::testing::Combine(::testing::Values(Stage::kQueued), ::testing::Bool()),
                         kName);

}  // namespace
}  // namespace maxsimd
