// What is served beside Rerank: health, reflection, GetServerInfo; and on which addresses.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include <unistd.h>

#include "maxsimd/v1/rerank.grpc.pb.h"
#include "tests/testing/health_client.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

constexpr char kService[] = "maxsimd.v1.RerankService";

v1::GetServerInfoResponse GetServerInfo(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  const grpc::Status status =
      v1::RerankService::NewStub(channel)->GetServerInfo(&context, {}, &info);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return info;
}

TEST(HealthTest, KnownServicesAreServing) {
  TestServer server;
  for (const char* service : {"", kService}) {
    EXPECT_EQ(CheckHealth(server.channel(), service), Health::kServing) << service;
    HealthWatch watch(server.channel(), service);
    EXPECT_EQ(watch.Next(), Health::kServing) << service;
  }
}

TEST(HealthTest, AnUnknownServiceIsNotFoundAndUnknown) {
  TestServer server;
  EXPECT_EQ(CheckHealth(server.channel(), "nobody"), Health::kNotFound);
  HealthWatch watch(server.channel(), "nobody");
  EXPECT_EQ(watch.Next(), Health::kServiceUnknown);
}

TEST(ReflectionTest, ListsTheServices) {
  TestServer server;
  RawCall call(server.channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ASSERT_TRUE(call.Write(ToBuffer(absl::string_view("\x3a\x00", 2))));  // list_services: ""
  ASSERT_TRUE(call.AwaitResponses(1));
  const std::string& answer = call.responses().front();
  for (const char* service :
       {kService, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}) {
    EXPECT_NE(answer.find(service), std::string::npos) << service;
  }
}

TEST(ReflectionTest, DescribesTheContract) {
  TestServer server;
  RawCall call(server.channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  // file_containing_symbol
  ASSERT_TRUE(call.Write(ToBuffer(absl::StrCat("\x22\x18", kService))));
  ASSERT_TRUE(call.AwaitResponses(1));
  EXPECT_NE(call.responses().front().find("max_held_result_bytes"), std::string::npos);
}

TEST(ServerInfoTest, SaysWhatRunsAndItsLimits) {
  Options options = TestOptions();
  options.max_message_bytes = uint64_t{2} << 20;
  TestServer server(options);
  const v1::GetServerInfoResponse info = GetServerInfo(server.channel());
  EXPECT_NE(info.version(), "");
  EXPECT_EQ(info.backend(), "gate");
  ASSERT_EQ(info.devices_size(), 1);
  EXPECT_EQ(info.devices(0), "gate");
  ASSERT_EQ(info.element_types_size(), 3);
  EXPECT_EQ(info.element_types(0), v1::ELEMENT_TYPE_FLOAT32);
  EXPECT_EQ(info.element_types(1), v1::ELEMENT_TYPE_FLOAT16);
  EXPECT_EQ(info.element_types(2), v1::ELEMENT_TYPE_BFLOAT16);
  EXPECT_EQ(info.features_size(), 0);
  EXPECT_EQ(info.limits().max_message_bytes(), uint64_t{2} << 20);
  EXPECT_EQ(info.limits().max_stream_message_bytes(), uint64_t{2} << 20);
  EXPECT_EQ(info.limits().max_query_tokens(), 4096u);
  EXPECT_EQ(info.limits().max_document_tokens(), 65536u);
  EXPECT_EQ(info.limits().max_dim(), 4096u);
  EXPECT_EQ(info.limits().max_documents_per_message(), 100'000u);
  EXPECT_EQ(info.limits().max_documents_per_stream(), uint64_t{1} << 32);
  EXPECT_EQ(info.limits().max_id_bytes(), 256u);
  EXPECT_EQ(info.limits().max_multiply_adds_per_message(), 2'000'000'000'000u);
  EXPECT_EQ(info.limits().max_held_result_bytes(), uint64_t{64} << 20);
}

TEST(ListenTest, ServesOnEveryAddressItIsGiven) {
  const std::string path = absl::StrCat("unix:/tmp/maxsimd-test-", getpid(), ".sock");
  Options options = TestOptions();
  options.listen = {"127.0.0.1:0", path};
  TestServer server(options);
  ASSERT_EQ(server.server().addresses().size(), 2u);
  EXPECT_EQ(server.server().addresses()[1], path);
  for (const std::string& address : server.server().addresses()) {
    const Outcome outcome =
        Exchange(ConnectTo(address), kRerankMethod, {ToBuffer(MakeRequest({}))});
    EXPECT_TRUE(outcome.status.ok()) << address << ": " << outcome.status.error_message();
  }
}

TEST(ServerInfoTest, AMalformedMessageIsInvalid) {
  TestServer server;
  const grpc::Slice slice(std::string("\xff"));
  const Outcome outcome = Exchange(server.channel(), "/maxsimd.v1.RerankService/GetServerInfo",
                                   {grpc::ByteBuffer(&slice, 1)});
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(outcome.status.error_message(), "malformed message");
}

}  // namespace
}  // namespace maxsimd
