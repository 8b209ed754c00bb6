// How a server ends: drained, cut off, or without its device.
#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "tests/testing/health_client.h"
#include "tests/testing/patience.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

constexpr char kService[] = "maxsimd.v1.RerankService";

Options DrainFor(absl::Duration delay, absl::Duration grace) {
  Options options = TestOptions();
  options.drain_delay = delay;
  options.shutdown_grace = grace;
  return options;
}

Outcome RerankOnce(TestServer& server) {
  return Exchange(server.channel(), kRerankMethod, {ToBuffer(MakeRequest({}))});
}

TEST(DrainTest, AnIdleServerEnds) {
  TestServer server;
  EXPECT_TRUE(RerankOnce(server).status.ok());
  server.server().RequestDrain();
  EXPECT_TRUE(server.AwaitEnd().ok());
}

TEST(DrainTest, HealthIsNotServingAtOnceWhileNewCallsAreServed) {
  TestServer server(DrainFor(kPatience, kPatience));
  HealthWatch all(server.channel(), "");
  HealthWatch service(server.channel(), kService);
  ASSERT_EQ(all.Next(), Health::kServing);
  ASSERT_EQ(service.Next(), Health::kServing);
  server.server().RequestDrain();
  EXPECT_EQ(all.Next(), Health::kNotServing);
  EXPECT_EQ(service.Next(), Health::kNotServing);
  EXPECT_EQ(CheckHealth(server.channel(), ""), Health::kNotServing);
  EXPECT_EQ(CheckHealth(server.channel(), kService), Health::kNotServing);
  EXPECT_TRUE(RerankOnce(server).status.ok());
  EXPECT_FALSE(server.ended());
}

TEST(DrainTest, AfterTheDelayNewCallsAreRefusedAndOldOnesFinish) {
  TestServer server;
  server.gate().Hold();
  RawCall scoring(server.channel(), kRerankMethod);
  ASSERT_TRUE(scoring.Write(ToBuffer(MakeRequest({}))));
  ASSERT_TRUE(server.gate().AwaitHeld(1));
  RawCall queued(server.channel(), kRerankMethod);
  ASSERT_TRUE(queued.Write(ToBuffer(MakeRequest({}))));
  RawCall streaming(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(streaming.Write(StreamStart(MakeRequest({}))));
  RawCall silent(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().calls == 4; }));

  server.server().RequestDrain();
  // Without documents: served still, a call would not have to wait at the gate.
  v1::RerankRequest nothing = MakeRequest({});
  nothing.clear_documents();
  ASSERT_TRUE(Eventually([&] {
    return Exchange(server.channel(), kRerankMethod, {ToBuffer(nothing)}).status.error_code() ==
           StatusCode::UNAVAILABLE;
  }));
  EXPECT_EQ(
      Exchange(server.channel(), kRerankStreamMethod, {StreamStart(nothing)}).status.error_code(),
      StatusCode::UNAVAILABLE);
  server.gate().Release();
  EXPECT_TRUE(scoring.Finish().status.ok());
  EXPECT_TRUE(queued.Finish().status.ok());
  // Streams in flight may still send.
  EXPECT_TRUE(streaming.Write(StreamChunk(MakeRequest({}))));
  streaming.WritesDone();
  EXPECT_EQ(streaming.Finish().results.size(), 4u);
  EXPECT_TRUE(silent.Write(StreamStart(MakeRequest({}))));
  EXPECT_FALSE(server.ended());
  silent.WritesDone();
  EXPECT_TRUE(silent.Finish().status.ok());
  EXPECT_TRUE(server.AwaitEnd().ok());
}

TEST(DrainTest, WhatIsLeftAfterTheGraceIsCutOff) {
  TestServer server(DrainFor(absl::ZeroDuration(), absl::Milliseconds(50)));
  server.gate().Hold();
  RawCall scoring(server.channel(), kRerankMethod);
  ASSERT_TRUE(scoring.Write(ToBuffer(MakeRequest({}))));
  ASSERT_TRUE(server.gate().AwaitHeld(1));
  RawCall streaming(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().calls == 2; }));
  server.server().RequestDrain();
  EXPECT_EQ(scoring.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(streaming.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(server.AwaitEnd().ok());
}

TEST(DrainTest, ASecondRequestCutsOffAtOnce) {
  TestServer server(DrainFor(kPatience, kPatience));
  RawCall streaming(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().calls == 1; }));
  server.server().RequestDrain();
  server.server().RequestDrain();
  EXPECT_EQ(streaming.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(server.AwaitEnd().ok());
}

TEST(DrainTest, ASlowReaderIsCutOffToo) {
  TestServer server(DrainFor(absl::ZeroDuration(), absl::Milliseconds(50)));
  v1::RerankRequest request = MakeUniformRequest(3'000, 1, {.dim = 1, .query_tokens = 500});
  request.mutable_options()->set_return_matches(true);
  RawCall slow(server.channel(), kRerankMethod);
  ASSERT_TRUE(slow.Write(ToBuffer(request)));
  ASSERT_TRUE(Eventually([&] { return server.server().counters().documents > 0; }));
  server.server().RequestDrain();
  EXPECT_TRUE(server.AwaitEnd().ok());
}

TEST(DeviceTest, AFailedBatchFailsItsCallsOnly) {
  TestServer server;
  server.gate().Fail(absl::InternalError("a hiccup"));
  EXPECT_EQ(RerankOnce(server).status.error_code(), StatusCode::INTERNAL);
  server.gate().Fail(absl::OkStatus());
  EXPECT_TRUE(RerankOnce(server).status.ok());
  EXPECT_TRUE(server.BecomesIdle());
  EXPECT_EQ(CheckHealth(server.channel(), ""), Health::kServing);
}

TEST(DeviceTest, ALostDeviceFailsEveryCallAndEndsTheServer) {
  TestServer server(DrainFor(kPatience, kPatience));
  HealthWatch health(server.channel(), "");
  ASSERT_EQ(health.Next(), Health::kServing);
  server.gate().Hold();
  RawCall scoring(server.channel(), kRerankMethod);
  ASSERT_TRUE(scoring.Write(ToBuffer(MakeRequest({}))));
  ASSERT_TRUE(server.gate().AwaitHeld(1));
  RawCall queued(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(queued.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(Eventually([&] { return server.server().lanes() == 2; }));
  RawCall silent(server.channel(), kRerankStreamMethod);
  ASSERT_TRUE(Eventually([&] { return server.server().usage().calls == 3; }));
  server.gate().Fail(absl::UnavailableError("the device is lost"));
  server.gate().Release();
  EXPECT_EQ(scoring.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(queued.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(silent.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(health.Next(), Health::kNotServing);
  EXPECT_EQ(server.AwaitEnd().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace maxsimd
