// What a server's memory comes to, whatever clients send: never more than its packed buffers, its
// admission budget and 200 MB.
//
// A process of its own, whose peak the kernel counts (VmHWM); all payload is one shared buffer.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/testing/child_process.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBuffers = 2;
constexpr size_t kBufferBytes = 64 * kMiB;
constexpr size_t kPendingBytes = 128 * kMiB;  // Small, so that it binds.
constexpr size_t kBound = kBuffers * kBufferBytes + kPendingBytes + 200'000'000;

class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (MAXSIMD_SANITIZED) GTEST_SKIP() << "sanitizers take memory of their own";
    server_ = std::make_unique<ChildProcess>(
        MAXSIMD_BINARY,
        std::vector<std::string>{"--listen=127.0.0.1:0", "--backend=cpu", "--drain-delay=0",
                                 absl::StrCat("--packed-buffers=", kBuffers),
                                 absl::StrCat("--packed-buffer-bytes=", kBufferBytes),
                                 absl::StrCat("--max-pending-bytes=", kPendingBytes)});
    address_ = server_->AwaitAddress();
    ASSERT_NE(address_, "");
    at_start_ = server_->resident_bytes(/*peak=*/true);
  }

  void ExpectBounded() {
    if (server_ == nullptr) return;
    const size_t peak = server_->resident_bytes(/*peak=*/true);
    std::printf("at start %zu MiB, peak %zu MiB, bound %zu MiB\n", at_start_ / kMiB, peak / kMiB,
                kBound / kMiB);
    EXPECT_GT(at_start_, size_t{0});
    EXPECT_LE(peak, kBound);
    const Outcome next = Exchange(ConnectTo(address_), kRerankMethod, {ToBuffer(MakeRequest({}))});
    EXPECT_TRUE(next.status.ok()) << next.status.error_message();
  }

  std::unique_ptr<ChildProcess> server_;
  std::string address_;
  size_t at_start_ = 0;
};

TEST_F(MemoryTest, AGibibyteInChunksOfAMebibyte) {
  const v1::RerankRequest request =
      MakeUniformRequest(8, 510, {.dim = 128, .query_tokens = 1});  // 1 MiB but for its fields.
  v1::RerankStreamRequest start;
  *start.mutable_start()->mutable_query() = request.query();
  start.mutable_start()->mutable_options()->set_top_k(10);
  v1::RerankStreamRequest chunk;
  *chunk.mutable_documents() = request.documents();
  std::vector<grpc::ByteBuffer> messages(1'024, ToBuffer(chunk));
  messages.insert(messages.begin(), ToBuffer(start));
  const Outcome outcome = Exchange(ConnectTo(address_), kRerankStreamMethod, messages);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.results.size(), 10u);
  EXPECT_EQ(outcome.summary->documents(), 8'192u);
  ExpectBounded();
}

TEST_F(MemoryTest, TwoHundredConnectionsThatEachOpenACallOf60MB) {
  const grpc::ByteBuffer message =
      ToBuffer(MakeUniformRequest(1'000, 234, {.dim = 128, .query_tokens = 1}));
  ASSERT_GT(message.Length(), 59'000'000u);
  std::vector<std::unique_ptr<RawCall>> calls;
  for (int call = 0; call < 200; ++call) {
    calls.push_back(std::make_unique<RawCall>(ConnectTo(address_), kRerankMethod));
    calls.back()->StartWrite(message);
  }
  int served = 0;
  for (const auto& call : calls) {
    const Outcome outcome = call->Finish();
    served += outcome.status.ok() ? 1 : 0;
    if (outcome.status.ok()) continue;
    EXPECT_EQ(outcome.status.error_code(), StatusCode::RESOURCE_EXHAUSTED)
        << outcome.status.error_message();
    EXPECT_NE(outcome.pushback, "") << outcome.status.error_message();
  }
  std::printf("served %d of %zu, refused the others\n", served, calls.size());
  EXPECT_GT(served, 0);
  ExpectBounded();
}

// Each asks for 12 MB of results and reads the first MB.
TEST_F(MemoryTest, ReadersThatDontRead) {
  v1::RerankRequest request = MakeUniformRequest(3'000, 1, {.dim = 1, .query_tokens = 500});
  request.mutable_options()->set_return_matches(true);
  const grpc::ByteBuffer message = ToBuffer(request);
  std::vector<std::unique_ptr<RawCall>> calls;
  for (int call = 0; call < 100; ++call) {
    calls.push_back(std::make_unique<RawCall>(ConnectTo(address_), kRerankMethod));
    calls.back()->Write(message);
  }
  int served = 0;
  for (const auto& call : calls) served += call->AwaitResponses(1) ? 1 : 0;
  std::printf("served %d of %zu, refused the others\n", served, calls.size());
  EXPECT_GT(served, 0);
  for (const auto& call : calls) call->Cancel();
  calls.clear();
  ExpectBounded();
}

}  // namespace
}  // namespace maxsimd
