// What no generated client would send: bytes that are no message, streams out of order, methods
// that don't exist, messages over the limit.
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"

#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

void ExpectRefused(const Outcome& outcome, StatusCode code, const std::string& word,
                   const std::string& pushback = "") {
  EXPECT_EQ(outcome.status.error_code(), code) << outcome.status.error_message();
  EXPECT_NE(outcome.status.error_message().find(word), std::string::npos)
      << outcome.status.error_message();
  EXPECT_EQ(outcome.pushback, pushback);
}

std::string Start(const v1::RerankRequest& request) {
  v1::RerankStreamRequest message;
  *message.mutable_start() = request;
  return message.SerializeAsString();
}

std::string Chunk(const v1::Documents& documents) {
  v1::RerankStreamRequest message;
  *message.mutable_documents() = documents;
  return message.SerializeAsString();
}

// Replaces the one place that holds `from` by as many other bytes.
std::string Replace(std::string bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(from.size(), to.size());
  return at == std::string::npos ? bytes : bytes.replace(at, from.size(), to);
}

class MalformedMessageTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(Exchange(server_.channel(), kRerankMethod, {ToBuffer(request_)}).status.ok());
    EXPECT_TRUE(server_.BecomesIdle());
  }
  Outcome Rerank(const std::string& bytes) {
    return Exchange(server_.channel(), kRerankMethod, {ToBuffer(bytes)});
  }
  Outcome RerankStream(const std::vector<std::string>& messages) {
    std::vector<grpc::ByteBuffer> buffers;
    for (const std::string& bytes : messages) buffers.push_back(ToBuffer(bytes));
    return Exchange(server_.channel(), kRerankStreamMethod, buffers);
  }

  const v1::RerankRequest request_ = MakeRequest({});
  const std::string bytes_ = request_.SerializeAsString();
  TestServer server_;
};

TEST_F(MalformedMessageTest, GarbageIsInvalidArgument) {
  for (const std::string& garbage :
       {std::string(100, '\xff'), std::string("GET / HTTP/1.1"), std::string(7, '\0'),
        std::string("\x0c"), std::string("\x0a\xff\xff\xff\xff\x0f")}) {
    ExpectRefused(Rerank(garbage), StatusCode::INVALID_ARGUMENT, "");
    ExpectRefused(RerankStream({garbage}), StatusCode::INVALID_ARGUMENT, "");
    ExpectRefused(RerankStream({Start(request_), garbage}), StatusCode::INVALID_ARGUMENT, "");
  }
}

TEST_F(MalformedMessageTest, AMessageCutAnywhereIsInvalidArgumentOrWhatItsFieldsSay) {
  const std::string start = Start(request_);
  for (size_t size = 0; size < bytes_.size(); size += 1 + size / 8) {
    // Cut between two fields it is a message, though never one without a mistake.
    ExpectRefused(Rerank(bytes_.substr(0, size)), StatusCode::INVALID_ARGUMENT, "");
    ExpectRefused(RerankStream({start.substr(0, size)}), StatusCode::INVALID_ARGUMENT, "");
  }
}

TEST_F(MalformedMessageTest, AnEmptyMessageHasNoQueryNorStart) {
  ExpectRefused(Rerank(""), StatusCode::INVALID_ARGUMENT, "tokens");
  ExpectRefused(RerankStream({""}), StatusCode::INVALID_ARGUMENT, "start");
  ExpectRefused(RerankStream({Start(request_), ""}), StatusCode::INVALID_ARGUMENT, "documents");
}

TEST_F(MalformedMessageTest, ACallWithoutAMessageIsInvalidArgument) {
  ExpectRefused(Exchange(server_.channel(), kRerankMethod, {}), StatusCode::INVALID_ARGUMENT,
                "message");
  ExpectRefused(Exchange(server_.channel(), kRerankStreamMethod, {}), StatusCode::INVALID_ARGUMENT,
                "start");
}

TEST_F(MalformedMessageTest, AStreamStartsOnceAndFirst) {
  ExpectRefused(RerankStream({Chunk(request_.documents())}), StatusCode::INVALID_ARGUMENT, "start");
  ExpectRefused(RerankStream({Start(request_), Start(request_)}), StatusCode::INVALID_ARGUMENT,
                "start");
}

TEST_F(MalformedMessageTest, TwoStartsInOneMessageMerge) {
  v1::RerankRequest query;
  *query.mutable_query() = request_.query();
  v1::RerankRequest documents;
  *documents.mutable_documents() = request_.documents();
  const Outcome outcome = RerankStream({Start(query) + Start(documents)});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.results.size(), 2u);
}

TEST_F(MalformedMessageTest, IdsMustBeUtf8) {
  for (const std::string wrong :
       {"a\xff\xff\xff", "\xc0\x80zz", "\xed\xa0\x80z", "\xf5\x80\x80\x80", "abc\xc3"}) {
    v1::RerankRequest request = request_;
    request.mutable_documents()->add_ids("");
    request.mutable_documents()->add_ids("MARK");
    ExpectRefused(Rerank(Replace(request.SerializeAsString(), "MARK", wrong)),
                  StatusCode::INVALID_ARGUMENT, "ids");
    ExpectRefused(RerankStream({Replace(Start(request), "MARK", wrong)}),
                  StatusCode::INVALID_ARGUMENT, "ids");
  }
}

TEST_F(MalformedMessageTest, ChunksMayDifferInHavingIds) {
  v1::Documents named = request_.documents();
  named.add_ids("\xc3\xa9");
  named.add_ids("");
  const Outcome outcome =
      RerankStream({Start(request_), Chunk(named), Chunk({}), Chunk(request_.documents())});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  ASSERT_EQ(outcome.results.size(), 6u);
  for (const v1::ScoredDocument& result : outcome.results) {
    EXPECT_EQ(result.id(), result.index() == 2 ? "\xc3\xa9" : "");
  }
}

TEST_F(MalformedMessageTest, UnknownFieldsAreIgnored) {
  // Field 1000: a varint, 8 bytes, a string and a group that holds a varint.
  const std::string unknown(
      "\xc0\x3e\x05"
      "\xc1\x3e"
      "12345678"
      "\xc2\x3e\x03"
      "abc"
      "\xc3\x3e\x08\x01\xc4\x3e");
  const Outcome plain = Rerank(bytes_);
  for (const Outcome& outcome :
       {Rerank(unknown + bytes_ + unknown), RerankStream({unknown + Start(request_) + unknown})}) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    ASSERT_EQ(outcome.results.size(), plain.results.size());
    for (size_t i = 0; i < plain.results.size(); ++i) {
      EXPECT_EQ(outcome.results[i].SerializeAsString(), plain.results[i].SerializeAsString());
    }
  }
}

TEST_F(MalformedMessageTest, MessagesOverTheLimitAreNamed) {
  // An unknown field as ballast: size is all that is wrong.
  const auto with_ballast = [](const std::string& bytes, size_t total) {
    std::string ballast = std::string("\xc2\x3e") + std::string(4, '\0');
    const size_t size = total - bytes.size() - 6;
    for (int i = 0; i < 4; ++i) {
      ballast[2 + i] = static_cast<char>((size >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
    }
    return bytes + ballast + std::string(size, 'x');
  };
  const size_t limit = 4 << 20;
  EXPECT_TRUE(Rerank(with_ballast(bytes_, limit)).status.ok());
  EXPECT_TRUE(RerankStream({with_ballast(Start(request_), limit)}).status.ok());
  ExpectRefused(Rerank(with_ballast(bytes_, limit + 1)), StatusCode::RESOURCE_EXHAUSTED,
                "max_message_bytes", "-1");
  ExpectRefused(RerankStream({with_ballast(Start(request_), limit + 1)}),
                StatusCode::RESOURCE_EXHAUSTED, "max_stream_message_bytes", "-1");
  ExpectRefused(RerankStream({Start(request_), with_ballast(Chunk({}), limit + 1)}),
                StatusCode::RESOURCE_EXHAUSTED, "max_stream_message_bytes", "-1");
}

TEST_F(MalformedMessageTest, UnknownMethodsAndServicesAreUnimplemented) {
  for (const char* method : {"/maxsimd.v1.RerankService/Embed", "/maxsimd.v1.RerankService/rerank",
                             "/maxsimd.v1.Nothing/Rerank", "/x/y", "/"}) {
    ExpectRefused(Exchange(server_.channel(), method, {ToBuffer(request_)}),
                  StatusCode::UNIMPLEMENTED, "");
  }
}

// Compressed, 64 KB of zeros would be a few bytes: there is no bound to what they might unfold to.
TEST_F(MalformedMessageTest, CompressedMessagesAreNotTaken) {
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  const auto channel =
      grpc::CreateCustomChannel(server_.address(), grpc::InsecureChannelCredentials(), arguments);
  ExpectRefused(Exchange(channel, kRerankMethod, {ToBuffer(std::string(1 << 16, '\0'))}),
                StatusCode::UNIMPLEMENTED, "");
}

// 4 MB ask for 3e13 multiply-adds: refused before any of them, and before much else is done.
TEST(OverlapTest, AMillionOverlappingDocumentsAreRefusedAtOnce) {
  v1::RerankRequest request = MakeRequest({.dim = 128, .query_tokens = 32, .lengths = {7'000}});
  request.mutable_documents()->clear_lengths();
  for (int i = 0; i < 1'000'000; ++i) {
    request.mutable_documents()->add_lengths(1 + i % 127);
    request.mutable_documents()->add_offsets(i % 6'000);
  }
  Options options = TestOptions();
  options.max_message_bytes = uint64_t{8} << 20;
  TestServer server(options);
  const grpc::ByteBuffer message = ToBuffer(request);
  const absl::Time start = absl::Now();
  ExpectRefused(Exchange(server.channel(), kRerankMethod, {message}),
                StatusCode::RESOURCE_EXHAUSTED, "max_documents_per_message", "-1");
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
}

// 90,000 documents share 7,000 rows of dim 128: 8e12 multiply-adds for 2 MB.
TEST(OverlapTest, TheirWorkIsRefusedByName) {
  v1::RerankRequest request = MakeRequest({.dim = 128, .query_tokens = 100, .lengths = {7'000}});
  request.mutable_documents()->clear_lengths();
  for (int i = 0; i < 90'000; ++i) {
    request.mutable_documents()->add_lengths(7'000);
    request.mutable_documents()->add_offsets(0);
  }
  TestServer server;
  const grpc::ByteBuffer message = ToBuffer(request);
  const absl::Time start = absl::Now();
  ExpectRefused(Exchange(server.channel(), kRerankMethod, {message}),
                StatusCode::RESOURCE_EXHAUSTED, "max_multiply_adds_per_message", "-1");
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
}

}  // namespace
}  // namespace maxsimd
