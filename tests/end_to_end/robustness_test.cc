// Thousands of short calls of every kind of ending, at once: afterwards nothing is left and the
// server serves.
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "tests/testing/health_client.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

constexpr int kThreads = 8;
constexpr int kCalls = 10'000;

struct Material {
  v1::RerankRequest request;
  grpc::ByteBuffer unary;
  std::vector<grpc::ByteBuffer> chunks;
  std::vector<std::string> answer;  // By index.
};

// Requests of every type, with the answers that they get alone.
std::vector<Material> MakeMaterial(TestServer& server) {
  std::mt19937 random(5);
  std::vector<Material> material(6);
  for (size_t i = 0; i < material.size(); ++i) {
    Material& one = material[i];
    Shape shape{.element_type = static_cast<v1::ElementType>(1 + i % 3),
                .dim = static_cast<uint32_t>(8 << i),
                .seed = i};
    one.request = MakeUniformRequest(1 + 40 * (i % 3), 1 + 12 * (i % 2), shape);
    one.request.mutable_options()->set_return_matches(i % 2 == 1);
    one.unary = ToBuffer(one.request);
    one.chunks = ToSlicedBuffers(CutAnywhere(one.request, random), random);
    const Outcome outcome = Exchange(server.channel(), kRerankMethod, {one.unary});
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    one.answer.resize(one.request.documents().lengths_size());
    for (const v1::ScoredDocument& result : outcome.results) {
      one.answer[result.index()] = result.SerializeAsString();
    }
  }
  return material;
}

class Caller {
 public:
  Caller(TestServer& server, const std::vector<Material>& material, uint32_t seed)
      : server_(server), material_(material), random_(seed), channel_(Connect()) {}

  void CallOnce() {
    const Material& material = material_[random_() % material_.size()];
    const bool stream = random_() % 2 == 0;
    const char* const method = stream ? kRerankStreamMethod : kRerankMethod;
    std::vector<grpc::ByteBuffer> messages = {material.unary};
    if (stream) messages = material.chunks;
    switch (random_() % 8) {
      case 0:  // Cancelled somewhere.
        return Leave(method, messages, /*disconnect=*/false);
      case 1:
        return Leave(method, messages, /*disconnect=*/random_() % 4 == 0);
      case 2: {  // In time or not.
        const Outcome outcome =
            Exchange(channel_, method, messages, absl::Microseconds(random_() % 3'000));
        EXPECT_TRUE(outcome.status.ok() ||
                    outcome.status.error_code() == StatusCode::DEADLINE_EXCEEDED)
            << outcome.status.error_message();
        return;
      }
      case 3: {
        const Outcome outcome = Exchange(channel_, method, {ToBuffer("no message of ours")});
        EXPECT_EQ(outcome.status.error_code(), StatusCode::INVALID_ARGUMENT);
        return;
      }
      default:
        return ExpectAnswer(Exchange(channel_, method, messages), material);
    }
  }

 private:
  std::shared_ptr<grpc::Channel> Connect() { return ConnectTo(server_.address()); }

  void Leave(const char* method, const std::vector<grpc::ByteBuffer>& messages, bool disconnect) {
    RawCall call(channel_, method);
    if (random_() % 2 == 0) call.StartReading();
    const size_t sent = random_() % (messages.size() + 1);
    for (size_t i = 0; i < sent; ++i) {
      if (!call.Write(messages[i])) break;
    }
    if (random_() % 2 == 0) call.WritesDone();
    // Of what was sent whole a result comes, half-closed or not.
    if (sent == messages.size() && random_() % 2 == 0) call.AwaitResponses(1);
    if (disconnect) channel_ = Connect();  // The old one goes with the call.
  }

  static void ExpectAnswer(const Outcome& outcome, const Material& material) {
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.results.size(), material.answer.size());
    for (const v1::ScoredDocument& result : outcome.results) {
      EXPECT_EQ(result.SerializeAsString(), material.answer[result.index()]);
    }
  }

  TestServer& server_;
  const std::vector<Material>& material_;
  std::mt19937 random_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST(RobustnessTest, NothingIsLeftOfThousandsOfCallsThatEndInEveryWay) {
  TestServer server;
  const std::vector<Material> material = MakeMaterial(server);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Caller caller(server, material, 100 + thread);
      for (int call = 0; call < kCalls / kThreads; ++call) caller.CallOnce();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(server.BecomesIdle());
  EXPECT_EQ(CheckHealth(server.channel(), ""), Health::kServing);
  const Outcome outcome = Exchange(server.channel(), kRerankMethod, {material.front().unary});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.results.front().SerializeAsString(), material.front().answer.front());
  server.server().RequestDrain();
  EXPECT_TRUE(server.AwaitEnd().ok());
}

}  // namespace
}  // namespace maxsimd
