#include "server/rpc/rerank_call.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/support/slice.h"
#include "spdlog/spdlog.h"

#include "kernels/status_macros.h"
#include "server/codec/decode.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/grpc_status.h"

namespace maxsimd {
namespace {

constexpr char kPushback[] = "grpc-retry-pushback-ms";
constexpr char kPushbackNever[] = "-1";
// When an overloaded server should be asked again: a few full batches later.
constexpr char kPushbackLater[] = "100";

grpc::ByteBuffer ToByteBuffer(std::string message) {
  auto* const owned = new std::string(std::move(message));
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owned);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

struct RerankCall::Message {
  std::vector<grpc::Slice> slices;
  size_t size_bytes = 0;
  Admission::Hold room;
  absl::Time received;

  MessageView view() const {
    std::vector<MessageView::Slice> spans;
    spans.reserve(slices.size());
    for (const grpc::Slice& slice : slices) {
      spans.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
    }
    return MessageView(std::move(spans));
  }
};

RerankCall* RerankCall::Start(const CallEnvironment& environment,
                              grpc::GenericCallbackServerContext* context, Method method) {
  auto call = std::make_shared<RerankCall>(environment, context, method);
  call->self_ = call;
  environment.registry->Add(call);
  call->Begin();
  return call.get();
}

RerankCall::RerankCall(const CallEnvironment& environment,
                       grpc::GenericCallbackServerContext* context, Method method)
    : environment_(environment),
      context_(context),
      method_(method),
      started_at_(absl::Now()),
      progress_(method == Method::kRerank) {}

void RerankCall::Begin() {
  if (environment_.registry->refusing()) {
    return End(absl::UnavailableError("the server is draining"), Retry::kUnsaid);
  }
  if (!environment_.admission->EnterCall()) {
    return End(absl::ResourceExhaustedError("overloaded: max_pending_calls are in progress"),
               Retry::kLater);
  }
  {
    MutexLock lock(&mutex_);
    entered_ = true;
    lane_ = environment_.batcher->AddLane();
  }
  RequestRead();
}

// ---------------------------------------------------------------------------------------------
// Reading

void RerankCall::RequestRead() {
  {
    MutexLock lock(&mutex_);
    if (finished_ || waits_for_room_ || !progress_.WantsRead()) return;
    progress_.OnReadStarted();
    waits_for_room_ = true;
    read_since_ = absl::Now();
  }
  const uint64_t largest = method_ == Method::kRerank
                               ? environment_.limits.max_message_bytes
                               : environment_.limits.max_stream_message_bytes;
  const Admission::WaitId id = environment_.admission->Reserve(
      largest,
      [call = shared_from_this()](Admission::Hold room) { call->OnRoom(std::move(room)); });
  bool give_up = false;
  {
    MutexLock lock(&mutex_);
    if (!waits_for_room_) return;
    // Room may have come at once, on another thread, and the next wait have begun and been noted.
    wait_ = std::max(wait_.value_or(0), id);
    give_up = finished_;
  }
  if (give_up) environment_.admission->CancelWait(id);
}

void RerankCall::OnRoom(Admission::Hold room) {
  MutexLock lock(&mutex_);
  waits_for_room_ = false;
  wait_.reset();
  const absl::Time now = absl::Now();
  summary_.queue += now - std::exchange(read_since_, now);
  if (finished_) return;  // `room` goes back after the lock: it is the caller's.
  read_room_ = std::move(room);
  StartRead(&read_buffer_);
}

void RerankCall::OnReadDone(bool ok) {
  auto message = std::make_shared<Message>();
  {
    MutexLock lock(&mutex_);
    message->received = absl::Now();
    summary_.receive += message->received - read_since_;
    message->room = std::move(read_room_);
    if (finished_) return;
  }
  if (!ok) return OnHalfClose();
  if (!read_buffer_.Valid() || !read_buffer_.Dump(&message->slices).ok()) {
    return End(absl::ResourceExhaustedError("the message was reset while it was received"),
               Retry::kLater);
  }
  message->size_bytes = read_buffer_.Length();
  read_buffer_.Clear();
  message->room.Resize(message->size_bytes);
  OnMessage(std::move(message));
}

void RerankCall::OnHalfClose() {
  if (context_->IsCancelled()) return;  // OnCancel ends it.
  bool started = false;
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    started = progress_.started();
    progress_.OnInputDone();
    ended = WriteLocked();
  }
  if (ended) return LetGo();
  if (started) return;
  End(absl::InvalidArgumentError(method_ == Method::kRerank
                                     ? "request: the call ended without a message"
                                     : "start: the stream ended without a message"),
      Retry::kUnsaid);
}

void RerankCall::OnMessage(std::shared_ptr<Message> message) {
  auto work = std::make_shared<Work>();
  work->message = message->view();
  if (const absl::Status status = Decode(work->message, work->chunk); !status.ok()) {
    return End(status, absl::IsResourceExhausted(status) ? Retry::kNever : Retry::kUnsaid);
  }
  // What the decoded documents take is held until they are scored, the message until it is copied.
  auto held = std::make_shared<Admission::Hold>(
      environment_.admission->HoldNow(work->chunk.memory_bytes(), work->chunk.multiply_adds));
  work->query = query_;
  work->received = message->received;
  work->recipient = shared_from_this();
  work->message_owner = std::move(message);
  work->owner = std::move(held);

  const bool queued = !work->chunk.units.empty();
  absl::Status accepted;
  bool ended = false;
  Batcher::LaneId lane = 0;
  {
    MutexLock lock(&mutex_);
    if (finished_) return;
    accepted = Accept(work->chunk, work->first_index);
    ended = accepted.ok() ? WriteLocked() : FinishLocked(accepted, Retry::kNever);
    lane = *lane_;
  }
  if (ended) return LetGo();
  RequestRead();  // The next message is received while this one is copied.
  if (queued) environment_.batcher->Submit(lane, std::move(work));
}

absl::Status RerankCall::Decode(const MessageView& view, DocumentChunk& documents) {
  const Limits& limits = environment_.limits;
  if (query_ != nullptr) {
    ASSIGN_OR_RETURN(documents,
                     DecodeStreamDocuments(view, *query_, limits, environment_.unit_limits));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(StartMessage start,
                   method_ == Method::kRerank
                       ? DecodeRerank(view, limits, environment_.unit_limits)
                       : DecodeStreamStart(view, limits, environment_.unit_limits));
  query_ = std::move(start.query);
  documents = std::move(start.documents);
  MutexLock lock(&mutex_);
  if (start.top_k > 0) {
    top_k_.emplace(start.top_k);
    held_results_.emplace(start.top_k);
    held_room_ = environment_.admission->HoldNow(0, 0);
  }
  return absl::OkStatus();
}

absl::Status RerankCall::Accept(const DocumentChunk& documents, uint64_t& first_index) {
  first_index = progress_.documents_received();
  const uint64_t count = documents.documents.size();
  if (first_index + count > environment_.limits.max_documents_per_stream) {
    return absl::ResourceExhaustedError(absl::StrCat("max_documents_per_stream: more than ",
                                                     environment_.limits.max_documents_per_stream));
  }
  progress_.OnMessage(count, documents.empty.size(), !documents.units.empty());
  summary_.documents += count;
  summary_.document_tokens += documents.document_tokens;
  RETURN_IF_ERROR(HoldResults(documents));
  for (const uint32_t document : documents.empty) {
    AddResult(first_index + document,
              {-std::numeric_limits<float>::infinity(), DocumentStatus::kEmpty},
              documents.ids[document], {});
  }
  return absl::OkStatus();
}

absl::Status RerankCall::HoldResults(const DocumentChunk& documents) {
  if (held_results_.has_value()) {
    held_results_->Add(*query_, documents);
    const uint64_t limit = environment_.limits.max_held_result_bytes;
    if (held_results_->bytes() > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("max_held_result_bytes: the results held for top_k may take ",
                       held_results_->bytes(), ", which exceeds ", limit));
    }
    held_room_.Resize(held_results_->bytes());  // Never less than before, so that none is granted.
    return absl::OkStatus();
  }
  size_t bytes = 0;
  for (const uint32_t document : documents.empty)
    bytes += EmptyResultBytes(documents.ids[document]);
  if (bytes > 0) HoldUnsent(bytes);
  return absl::OkStatus();
}

void RerankCall::HoldUnsent(size_t bytes) {
  unsent_rooms_.push_back(environment_.admission->HoldNow(bytes, 0));
  progress_.OnUnsent(bytes);
}

// ---------------------------------------------------------------------------------------------
// Scores

void RerankCall::OnCopied() {
  {
    MutexLock lock(&mutex_);
    progress_.OnCopied();
  }
  RequestRead();
}

void RerankCall::OnScored(absl::Span<const ScoredDocuments> scored, const BatchTimings& timings) {
  size_t result_bytes = 0;
  for (const ScoredDocuments& part : scored) result_bytes += part.result_bytes;
  bool ended = false;
  bool held = false;
  Batcher::LaneId lane = 0;
  {
    MutexLock lock(&mutex_);
    if (finished_) return;
    lane = *lane_;
    for (const ScoredDocuments& part : scored) AddScores(part);
    summary_.queue += timings.queue;
    summary_.pack += timings.pack;
    summary_.upload += timings.upload;
    summary_.compute += timings.compute;
    ++summary_.batches;
    last_score_at_ = absl::Now();
    held = top_k_.has_value();
    if (!held) {
      HoldUnsent(result_bytes);
      unsent_lane_bytes_ += result_bytes;
    }
    ended = WriteLocked();
  }
  if (ended) return LetGo();
  if (held) environment_.batcher->ReleaseResults(lane, result_bytes);
}

void RerankCall::AddScores(const ScoredDocuments& part) {
  const size_t matches_each = part.matches.size() / part.documents.size();
  for (size_t i = 0; i < part.documents.size(); ++i) {
    const uint32_t document = part.documents[i];
    AddResult(part.work->first_index + document, part.scores[i], part.work->chunk.ids[document],
              part.matches.subspan(i * matches_each, matches_each));
  }
  progress_.OnScored(part.documents.size());
}

void RerankCall::AddResult(uint64_t index, const DocumentScore& score, absl::string_view id,
                           absl::Span<const TokenMatch> matches) {
  const auto position = static_cast<uint32_t>(index);  // max_documents_per_stream is at most 2^32.
  if (top_k_.has_value()) {
    top_k_->Add(position, score, id, matches);
  } else {
    encoder_.Add(position, score, id, matches);
  }
}

// ---------------------------------------------------------------------------------------------
// Writing

bool RerankCall::WriteLocked() {
  if (writing_ || finished_) return false;
  if (progress_.complete() && !end_encoded_) EncodeEnd();
  if (outgoing_.empty()) {
    for (std::string& message : encoder_.Take()) outgoing_.push_back(std::move(message));
  }
  if (outgoing_.empty()) return false;
  write_buffer_ = ToByteBuffer(std::move(outgoing_.front()));
  outgoing_.pop_front();
  writing_ = true;
  write_since_ = absl::Now();
  if (!end_encoded_ || !outgoing_.empty()) {
    StartWrite(&write_buffer_);
    return false;
  }
  finished_ = true;
  finished_at_ = write_since_;
  StartWriteAndFinish(&write_buffer_, grpc::WriteOptions(), grpc::Status::OK);
  return true;
}

void RerankCall::EncodeEnd() {
  end_encoded_ = true;
  if (top_k_.has_value()) {
    for (const TopK::Result& result : top_k_->Take()) {
      encoder_.Add(result.index, result.score, result.id, result.matches);
    }
  }
  summary_.total = std::max(last_score_at_, started_at_) - started_at_;
  encoder_.AddSummary(summary_);
}

void RerankCall::OnWriteDone(bool ok) {
  std::deque<Admission::Hold> sent;  // Given back without the lock.
  size_t lane_bytes = 0;
  std::optional<Batcher::LaneId> lane;
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (finished_ || !ok) return;  // A write fails only when the call is cancelled.
    lane = lane_;
    if (outgoing_.empty() && encoder_.empty()) {
      sent = std::exchange(unsent_rooms_, {});
      for (const Admission::Hold& room : sent) progress_.OnSent(room.bytes());
      lane_bytes = std::exchange(unsent_lane_bytes_, 0);
    }
    ended = WriteLocked();
  }
  if (ended) return LetGo();
  if (lane_bytes > 0) environment_.batcher->ReleaseResults(*lane, lane_bytes);
  RequestRead();
}

// ---------------------------------------------------------------------------------------------
// The end

void RerankCall::End(const absl::Status& status, Retry retry) {
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    ended = FinishLocked(status, retry);
  }
  if (ended) LetGo();
}

bool RerankCall::FinishLocked(const absl::Status& status, Retry retry) {
  if (finished_) return false;
  finished_ = true;
  finished_at_ = absl::Now();
  if (retry != Retry::kUnsaid) {
    context_->AddTrailingMetadata(kPushback,
                                  retry == Retry::kNever ? kPushbackNever : kPushbackLater);
  }
  spdlog::debug("{} ended: {}", context_->method(), status.ToString());
  Finish(ToGrpcStatus(status));
  return true;
}

void RerankCall::LetGo() {
  std::deque<Admission::Hold> unsent;
  Admission::Hold held;
  std::optional<Admission::WaitId> wait;
  std::optional<Batcher::LaneId> lane;
  {
    MutexLock lock(&mutex_);
    unsent = std::exchange(unsent_rooms_, {});
    held = std::move(held_room_);
    wait = wait_;
    lane = lane_;
  }
  if (wait.has_value()) environment_.admission->CancelWait(*wait);
  if (lane.has_value()) environment_.batcher->RemoveLane(*lane);
}

void RerankCall::Abort(const absl::Status& status) {
  End(status, Retry::kUnsaid);
}

void RerankCall::OnCancel() {
  const bool late = absl::FromChrono(context_->deadline()) <= absl::Now();
  End(late ? absl::DeadlineExceededError("the call's deadline has passed")
           : absl::CancelledError("the client cancelled the call or is gone"),
      Retry::kUnsaid);
}

void RerankCall::OnTick(absl::Time now) {
  const absl::Duration idle = environment_.stream_idle_timeout;
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    if (done_) return;
    if (finished_) {
      // The end waits behind a message that the client doesn't read.
      if (now - finished_at_ > idle) context_->TryCancel();
    } else if (writing_ && now - write_since_ > idle) {
      ended = FinishLocked(
          absl::DeadlineExceededError(absl::StrCat("stream_idle_timeout: no result was read for ",
                                                   absl::FormatDuration(idle))),
          Retry::kUnsaid);
    } else if (waits_for_room_ && !progress_.started() &&
               now - read_since_ > environment_.max_admission_wait) {
      ended = FinishLocked(
          absl::ResourceExhaustedError("overloaded: no room for the call's first message within "
                                       "max_pending_bytes"),
          Retry::kLater);
    } else if (progress_.reading() && !waits_for_room_ && now - read_since_ > idle) {
      ended = FinishLocked(
          absl::DeadlineExceededError(absl::StrCat(
              "stream_idle_timeout: no message arrived whole for ", absl::FormatDuration(idle))),
          Retry::kUnsaid);
    }
  }
  if (ended) LetGo();
}

void RerankCall::OnDone() {
  bool entered = false;
  {
    MutexLock lock(&mutex_);
    done_ = true;
    entered = entered_;
  }
  if (entered) environment_.admission->LeaveCall();
  environment_.registry->Remove(this);
  self_.reset();  // May delete this.
}

}  // namespace maxsimd
