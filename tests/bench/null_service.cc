#include "tests/bench/null_service.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "grpcpp/support/slice.h"

#include "server/codec/encode.h"

namespace maxsimd {
namespace {

class NullCall final : public grpc::ServerGenericBidiReactor {
 public:
  // `buffers`: where to copy messages, or null.
  NullCall(bool single_message, const std::vector<grpc::ByteBuffer>& responses,
           WarmBuffers* buffers)
      : single_message_(single_message), responses_(responses), buffers_(buffers) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      if (buffers_ != nullptr) buffers_->CopyOnce(request_);
      request_.Clear();
      if (!single_message_) return StartRead(&request_);
    }
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }

  void OnCancel() override {}  // The read or write that is outstanding fails.
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    response_ = responses_[next_response_++];
    if (next_response_ == responses_.size()) {
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      StartWrite(&response_);
    }
  }

  const bool single_message_;
  const std::vector<grpc::ByteBuffer>& responses_;
  WarmBuffers* const buffers_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  size_t next_response_ = 0;
};

}  // namespace

void WarmBuffers::CopyOnce(const grpc::ByteBuffer& message) {
  std::string buffer;
  {
    MutexLock lock(&mutex_);
    if (!free_.empty()) {
      buffer = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (buffer.size() < message.Length()) buffer.resize(message.Length());
  std::vector<grpc::Slice> slices;
  if (message.Dump(&slices).ok()) {
    char* to = buffer.data();
    for (const grpc::Slice& slice : slices) {
      std::memcpy(to, slice.begin(), slice.size());
      to += slice.size();
    }
  }
  MutexLock lock(&mutex_);
  free_.push_back(std::move(buffer));
}

NullService::NullService(size_t documents, bool copy) : copy_(copy) {
  ResponseEncoder encoder;
  for (size_t i = 0; i < documents; ++i) encoder.Add(static_cast<uint32_t>(i), {}, "", {});
  encoder.AddSummary({});
  for (const std::string& message : encoder.Take()) {
    const grpc::Slice slice(message);
    responses_.emplace_back(&slice, 1);
  }
}

grpc::ServerGenericBidiReactor* NullService::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new NullCall(absl::EndsWith(context->method(), "/Rerank"), responses_,
                      copy_ ? &buffers_ : nullptr);
}

}  // namespace maxsimd
