// One call from the client's side, step by step and byte by byte: what a generated stub would not
// send, and not do.
//
// Every wait ends after kPatience at the latest and then fails the test.
//
// Threads: one at a time.
#ifndef MAXSIMD_TESTS_TESTING_RAW_CALL_H_
#define MAXSIMD_TESTS_TESTING_RAW_CALL_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/generic/generic_stub.h"

#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {

inline constexpr char kRerankMethod[] = "/maxsimd.v1.RerankService/Rerank";
inline constexpr char kRerankStreamMethod[] = "/maxsimd.v1.RerankService/RerankStream";

grpc::ByteBuffer ToBuffer(absl::string_view bytes);
grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message);

// How a call ended and all that it answered.
struct Outcome {
  grpc::Status status;
  std::vector<v1::ScoredDocument> results;  // As they came.
  std::optional<v1::RerankSummary> summary;
  std::string pushback;  // Trailer grpc-retry-pushback-ms, "" without.
  size_t responses = 0;
  size_t largest_response = 0;  // Bytes.
};

class RawCall {
 public:
  // `deadline` from now.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
          absl::Duration deadline = absl::InfiniteDuration());
  // Cancels what is not finished.
  ~RawCall();
  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  // Hands a message to the transport, whose window it must fit; false once the call is over.
  bool Write(const grpc::ByteBuffer& message);
  // Begins to write a message that may stall.
  void StartWrite(const grpc::ByteBuffer& message);
  bool AwaitWrite();
  void WritesDone();

  // From now on responses are read as they come; before, none is.
  void StartReading();
  // Waits for that many responses; false if the call ends before.
  bool AwaitResponses(size_t count);
  const std::vector<std::string>& responses() const { return responses_; }

  void Cancel() { context_.TryCancel(); }

  // Reads what is left and waits for the end.
  Outcome Finish();
  // The same, for answers that are no RerankResponse.
  grpc::Status AwaitStatus();

 private:
  enum Operation : size_t { kStart, kWrite, kWritesDone, kRead, kFinish, kOperations };

  void* Begin(Operation operation);
  // Lets events happen until the operation is over; whether it succeeded.
  bool Await(Operation operation);
  bool HandleNext();
  void OnRead(bool ok);

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  std::array<bool, kOperations> pending_{};
  std::array<bool, kOperations> ok_{};

  bool reading_ = false;
  bool finished_ = false;
  grpc::ByteBuffer read_buffer_;
  std::vector<std::string> responses_;
  grpc::Status status_;
};

// Sends the messages, reading while it writes, and waits for the end.
Outcome Exchange(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 absl::Span<const grpc::ByteBuffer> messages,
                 absl::Duration deadline = absl::InfiniteDuration());

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_RAW_CALL_H_
