#include "tests/testing/raw_call.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "grpcpp/channel.h"
#include "gtest/gtest.h"

#include "tests/testing/patience.h"

namespace maxsimd {
namespace {

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

grpc::ByteBuffer ToBuffer(absl::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message) {
  return ToBuffer(message.SerializeAsString());
}

RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 absl::Duration deadline) {
  if (deadline != absl::InfiniteDuration()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  }
  context_.set_wait_for_ready(false);
  call_ = grpc::GenericStub(channel).PrepareCall(&context_, method, &queue_);
  call_->StartCall(Begin(kStart));
  Await(kStart);
}

RawCall::~RawCall() {
  context_.TryCancel();
  if (!finished_) call_->Finish(&status_, Begin(kFinish));
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void* RawCall::Begin(Operation operation) {
  pending_[operation] = true;
  return reinterpret_cast<void*>(operation);
}

bool RawCall::Await(Operation operation) {
  while (pending_[operation]) {
    if (HandleNext()) continue;
    ADD_FAILURE() << "operation " << operation << " of a call took too long";
    return false;
  }
  return ok_[operation];
}

bool RawCall::HandleNext() {
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + kPatience)) !=
      grpc::CompletionQueue::GOT_EVENT) {
    return false;
  }
  const auto operation = reinterpret_cast<size_t>(tag);
  pending_[operation] = false;
  ok_[operation] = ok;
  if (operation == kRead) OnRead(ok);
  return true;
}

void RawCall::OnRead(bool ok) {
  if (!ok) return;
  responses_.push_back(ToString(read_buffer_));
  call_->Read(&read_buffer_, Begin(kRead));
}

bool RawCall::Write(const grpc::ByteBuffer& message) {
  StartWrite(message);
  return AwaitWrite();
}

void RawCall::StartWrite(const grpc::ByteBuffer& message) {
  call_->Write(message, Begin(kWrite));
}

bool RawCall::AwaitWrite() {
  return Await(kWrite);
}

void RawCall::WritesDone() {
  call_->WritesDone(Begin(kWritesDone));
  Await(kWritesDone);
}

void RawCall::StartReading() {
  if (reading_) return;
  reading_ = true;
  call_->Read(&read_buffer_, Begin(kRead));
}

bool RawCall::AwaitResponses(size_t count) {
  StartReading();
  while (responses_.size() < count && pending_[kRead]) {
    if (!HandleNext()) {
      ADD_FAILURE() << "response " << responses_.size() << " of a call took too long";
      return false;
    }
  }
  return responses_.size() >= count;
}

grpc::Status RawCall::AwaitStatus() {
  StartReading();
  Await(kRead);
  finished_ = true;
  call_->Finish(&status_, Begin(kFinish));
  Await(kFinish);
  return status_;
}

Outcome RawCall::Finish() {
  Outcome outcome;
  outcome.status = AwaitStatus();
  for (const std::string& bytes : responses_) {
    v1::RerankResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    outcome.results.insert(outcome.results.end(), response.results().begin(),
                           response.results().end());
    EXPECT_FALSE(outcome.summary.has_value()) << "a response after the summary";
    if (response.has_summary()) outcome.summary = response.summary();
    outcome.largest_response = std::max(outcome.largest_response, bytes.size());
  }
  outcome.responses = responses_.size();
  const auto& trailers = context_.GetServerTrailingMetadata();
  if (const auto found = trailers.find("grpc-retry-pushback-ms"); found != trailers.end()) {
    outcome.pushback = std::string(found->second.data(), found->second.size());
  }
  // (A client's own deadline or cancellation may come after the summary.)
  const grpc::StatusCode code = outcome.status.error_code();
  if (code != grpc::StatusCode::CANCELLED && code != grpc::StatusCode::DEADLINE_EXCEEDED) {
    EXPECT_EQ(outcome.summary.has_value(), outcome.status.ok());
  }
  return outcome;
}

Outcome Exchange(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 absl::Span<const grpc::ByteBuffer> messages, absl::Duration deadline) {
  RawCall call(channel, method, deadline);
  call.StartReading();
  for (const grpc::ByteBuffer& message : messages) {
    if (!call.Write(message)) break;
  }
  call.WritesDone();
  return call.Finish();
}

}  // namespace maxsimd
