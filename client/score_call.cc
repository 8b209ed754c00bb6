#include "client/score_call.h"

#include <utility>

#include "absl/time/clock.h"
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/slice.h>

#include "kernels/mutex.h"

namespace maxsimd {
namespace {

constexpr char kRerank[] = "/maxsimd.v1.RerankService/Rerank";
constexpr char kRerankStream[] = "/maxsimd.v1.RerankService/RerankStream";

// Below this a copy is cheaper than a reference count and a slice of its own.
constexpr size_t kMinBytesInPlace = 1024;

// Reactions of one kind never run at the same time, those of different kinds may: reading touches
// `response_` and `outcome_`, writing `request_` and `next_message_`.
class ScoreCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ScoreCall(CallMessages messages, CallDone done)
      : messages_(std::move(messages)), done_(std::move(done)) {}

  void Start(const std::shared_ptr<grpc::Channel>& channel, absl::Duration timeout) {
    if (timeout != absl::InfiniteDuration()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    }
    grpc::GenericStub stub(channel);
    stub.PrepareBidiStreamingCall(&context_, messages_.stream ? kRerankStream : kRerank, {}, this);
    StartRead(&response_);
    WriteNext();
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (ok && next_message_ < messages_.count) WriteNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    v1::RerankResponse response;
    const grpc::Status parsed =
        grpc::SerializationTraits<v1::RerankResponse>::Deserialize(&response_, &response);
    if (!parsed.ok()) {
      malformed_ = true;
      context_.TryCancel();
      return;
    }
    for (v1::ScoredDocument& document : *response.mutable_results()) {
      outcome_.documents.push_back(std::move(document));
    }
    if (response.has_summary()) outcome_.summary = std::move(*response.mutable_summary());
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    outcome_.status = malformed_ ? grpc::Status(grpc::StatusCode::INTERNAL,
                                                "the server sent a malformed RerankResponse")
                                 : status;
    const auto& trailers = context_.GetServerTrailingMetadata();
    if (const auto it = trailers.find(kPushbackTrailer); it != trailers.end()) {
      outcome_.pushback.emplace(it->second.data(), it->second.size());
    }
    // The context goes first: if `done` let go of the channel while this call still held it, the
    // channel's last reference would be dropped on a thread of its own, which hangs.
    const CallDone done = std::move(done_);
    CallOutcome outcome = std::move(outcome_);
    delete this;
    done(std::move(outcome));
  }

 private:
  void WriteNext() {
    request_ = messages_.message(next_message_++);
    if (next_message_ == messages_.count) {
      StartWriteLast(&request_, grpc::WriteOptions());
    } else {
      StartWrite(&request_);
    }
  }

  const CallMessages messages_;
  CallDone done_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  size_t next_message_ = 0;
  grpc::ByteBuffer response_;
  bool malformed_ = false;
  CallOutcome outcome_;
};

grpc::Slice SliceInPlace(absl::string_view bytes, const std::shared_ptr<const void>& owner) {
  using Owner = std::shared_ptr<const void>;
  // gRPC reads a slice that it is to send, whatever its signature says.
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* held) { delete static_cast<Owner*>(held); }, new Owner(owner));
}

}  // namespace

void StartScoreCall(const std::shared_ptr<grpc::Channel>& channel, CallMessages messages,
                    absl::Duration timeout, CallDone done) {
  auto* call = new ScoreCall(std::move(messages), std::move(done));  // Deletes itself when done.
  call->Start(channel, timeout);
}

CallOutcome RunScoreCall(const std::shared_ptr<grpc::Channel>& channel, CallMessages messages,
                         absl::Duration timeout) {
  Mutex mutex;
  CondVar ended;
  std::optional<CallOutcome> outcome;
  StartScoreCall(channel, std::move(messages), timeout, [&](CallOutcome result) {
    MutexLock lock(&mutex);
    outcome = std::move(result);
    ended.NotifyOne();  // Under the lock: the waiter's variables go as soon as it has it.
  });
  MutexLock lock(&mutex);
  while (!outcome.has_value()) ended.Wait(&mutex);
  return *std::move(outcome);
}

grpc::ByteBuffer ToByteBuffer(const MessageParts& parts, const std::shared_ptr<const void>& owner) {
  std::vector<grpc::Slice> slices;
  std::string copied;  // What goes into the next slice.
  const auto flush = [&] {
    if (!copied.empty()) slices.emplace_back(copied);
    copied.clear();
  };
  for (const MessagePart& part : parts) {
    copied += part.owned;
    if (owner == nullptr || part.borrowed.size() < kMinBytesInPlace) {
      if (part.borrowed.size() < kMinBytesInPlace) {
        copied.append(part.borrowed.data(), part.borrowed.size());
        continue;
      }
      flush();
      slices.emplace_back(part.borrowed.data(), part.borrowed.size());
      continue;
    }
    flush();
    slices.push_back(SliceInPlace(part.borrowed, owner));
  }
  flush();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace maxsimd
