#include "client/score_call.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "client/health.h"

namespace maxsimd {
namespace {

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Join(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

bool Views(const grpc::ByteBuffer& buffer, const void* address) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  for (const grpc::Slice& slice : slices) {
    if (slice.begin() == address) return true;
  }
  return false;
}

TEST(ToByteBufferTest, SendsInPlaceAndHoldsTheOwnerAsLongAsTheBuffer) {
  auto owner = std::make_shared<std::string>(5000, 'd');
  const MessageParts parts = {{"head", *owner}, {"tail", "small"}};
  {
    const grpc::ByteBuffer buffer = ToByteBuffer(parts, owner);
    EXPECT_TRUE(Views(buffer, owner->data()));
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(Join(buffer), "head" + *owner + "tailsmall");
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ToByteBufferTest, CopiesWhatNobodyOwns) {
  std::string data(5000, 'd');
  const grpc::ByteBuffer buffer = ToByteBuffer({{"head", data}}, nullptr);
  EXPECT_FALSE(Views(buffer, data.data()));
  const std::string expected = "head" + data;
  data.assign(5000, 'x');
  EXPECT_EQ(Join(buffer), expected);
}

// Answers every call with one message of garbage.
class GarbageService : public grpc::CallbackGenericService {
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() : garbage_(BufferOf("\xff\xff\xff")) { StartWrite(&garbage_); }
    void OnWriteDone(bool) override { Finish(grpc::Status::OK); }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer garbage_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reactor();
  }
};

TEST(ScoreCallTest, EndsInternalWhereTheResponseIsMalformed) {
  GarbageService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto channel =
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
  const CallOutcome outcome = RunScoreCall(
      channel, {.stream = true, .count = 3, .message = [](size_t) { return BufferOf(""); }},
      absl::Seconds(30));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_NE(outcome.status.error_message().find("malformed"), std::string::npos);
  server->Shutdown();
}

TEST(HealthMessagesTest, HaveTheBytesOfTheProtocol) {
  EXPECT_EQ(Join(EncodeHealthRequest("abc")), std::string("\x0a\x03") + "abc");
  const auto decode = [](const std::string& bytes) {
    grpc::ByteBuffer buffer = BufferOf(bytes);
    return DecodeHealthResponse(&buffer);
  };
  EXPECT_EQ(*decode("\x08\x01"), ServingStatus::kServing);
  EXPECT_EQ(*decode("\x08\x02"), ServingStatus::kNotServing);
  EXPECT_EQ(*decode("\x08\x03"), ServingStatus::kServiceUnknown);
  EXPECT_EQ(*decode("\x08\x63"), ServingStatus::kUnknown);
  EXPECT_EQ(*decode("\x12\x01x\x08\x01"), ServingStatus::kServing);  // An unknown field first.
  EXPECT_FALSE(decode("\x08").ok());
  EXPECT_FALSE(decode("\x12\x05x").ok());
  EXPECT_FALSE(decode("\x0c").ok());
}

}  // namespace
}  // namespace maxsimd
