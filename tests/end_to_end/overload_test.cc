// Too much at a time: what is refused, with when to come back, and what waits and is then served.
#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "tests/testing/patience.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

void ExpectOverloaded(const Outcome& outcome, const std::string& word) {
  EXPECT_EQ(outcome.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(outcome.status.error_message().find(word), std::string::npos)
      << outcome.status.error_message();
  ASSERT_NE(outcome.pushback, "");
  EXPECT_GE(std::stoi(outcome.pushback), 0);
}

TEST(OverloadTest, CallsBeyondMaxPendingCallsAreRefusedUntilOneEnds) {
  Options options = TestOptions();
  options.max_pending_calls = 2;
  TestServer server(options);
  RawCall first(server.channel(), kRerankMethod);
  RawCall second(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().calls == 2; }));
  for (const char* method : {kRerankMethod, kRerankStreamMethod}) {
    ExpectOverloaded(RawCall(server.channel(), method).Finish(), "max_pending_calls");
  }
  first.Cancel();
  first.Finish();
  ASSERT_TRUE(Eventually([&] { return server.server().usage().calls == 1; }));
  EXPECT_TRUE(Exchange(server.channel(), kRerankMethod, {ToBuffer(MakeRequest({}))}).status.ok());
}

Options RoomForOneMessage() {
  Options options = TestOptions();
  options.max_pending_bytes = options.max_message_bytes;
  return options;
}

TEST(OverloadTest, ACallThatFindsNoRoomIsRefused) {
  TestServer server(RoomForOneMessage());
  RawCall holder(server.channel(), kRerankMethod);  // Sends nothing, but might send the most.
  ASSERT_TRUE(Eventually([&] { return server.server().usage().bytes > 0; }));
  for (const char* method : {kRerankMethod, kRerankStreamMethod}) {
    ExpectOverloaded(RawCall(server.channel(), method).Finish(), "max_pending_bytes");
  }
}

TEST(OverloadTest, ACallThatWaitsForRoomIsServedOnceThereIsSome) {
  TestServer server(RoomForOneMessage());
  std::vector<std::unique_ptr<RawCall>> waiting;
  auto holder = std::make_unique<RawCall>(server.channel(), kRerankMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().bytes > 0; }));
  for (const char* method : {kRerankMethod, kRerankMethod}) {
    waiting.push_back(std::make_unique<RawCall>(server.channel(), method));
  }
  ASSERT_TRUE(Eventually([&] { return server.server().usage().waiting == 2; }));
  holder.reset();
  // Either may be first: each has sent its message before the test waits for one.
  for (const auto& call : waiting) ASSERT_TRUE(call->Write(ToBuffer(MakeRequest({}))));
  for (const auto& call : waiting) {
    const Outcome outcome = call->Finish();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  }
  EXPECT_TRUE(server.BecomesIdle());
}

TEST(OverloadTest, ACallThatLeavesWhileItWaitsHoldsUpNobody) {
  TestServer server(RoomForOneMessage());
  auto holder = std::make_unique<RawCall>(server.channel(), kRerankMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().bytes > 0; }));
  RawCall leaves(server.channel(), kRerankMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().waiting == 1; }));
  RawCall stays(server.channel(), kRerankMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().waiting == 2; }));
  leaves.Cancel();
  EXPECT_EQ(leaves.Finish().status.error_code(), StatusCode::CANCELLED);
  holder.reset();
  ASSERT_TRUE(stays.Write(ToBuffer(MakeRequest({}))));
  EXPECT_TRUE(stays.Finish().status.ok());
  EXPECT_TRUE(server.BecomesIdle());
}

// A stream that has begun is never refused for want of room: it waits, and flow control with it.
TEST(OverloadTest, AStreamInProgressWaitsForRoom) {
  TestServer server(RoomForOneMessage());
  v1::RerankRequest request = MakeUniformRequest(64, 512, {.dim = 64});  // 4 MiB.
  std::vector<int> cuts;
  for (int cut = 1; cut < 64; ++cut) cuts.push_back(cut);
  std::vector<grpc::ByteBuffer> chunks;
  for (const auto& message : Cut(request, cuts)) chunks.push_back(ToBuffer(message));
  const Outcome outcome = Exchange(server.channel(), kRerankStreamMethod, chunks);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.results.size(), 64u);
}

}  // namespace
}  // namespace maxsimd
