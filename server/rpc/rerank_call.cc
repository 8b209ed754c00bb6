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
#include "server/rpc/overload.h"

namespace maxsimd {
namespace {

constexpr char kPushback[] = "grpc-retry-pushback-ms";
constexpr char kPushbackNever[] = "-1";
// When an overloaded server should be asked again: a few full batches later.
constexpr char kPushbackLater[] = "100";

// What a message's results may take at a time: a call's unsent results are bounded.
size_t ResultsAhead(const DocumentChunk& documents) {
  size_t bytes = 0;
  for (const Unit& unit : documents.units) bytes += unit.result_bytes;
  return std::min(bytes, CallProgress::kMaxUnsentBytes);
}

}  // namespace

struct RerankCall::Message {
  // Frees the memory, last: its destructor enters gRPC properly.  A slice's doesn't (1.51.1), and
  // one that frees memory on a thread of ours while the resource quota is tight crashes there.
  grpc::ByteBuffer buffer;
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
  if (environment.registry->Add(call)) {
    call->Begin();
  } else {
    call->End(absl::UnavailableError("the server is draining"));
  }
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
  if (!environment_.admission->EnterCall()) {
    return End(Overloaded("max_pending_calls are in progress"));
  }
  {
    MutexLock lock(&mutex_);
    entered_ = true;
    if (finished_) return;  // Aborted meanwhile.
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
    if (finished_) {
      read_buffer_.Clear();
      return;
    }
  }
  if (!ok) return OnHalfClose();
  message->buffer.Swap(&read_buffer_);
  read_buffer_.Clear();
  if (!message->buffer.Valid() || !message->buffer.Dump(&message->slices).ok()) {
    return End(Overloaded("the message was reset while it was received"));
  }
  message->size_bytes = message->buffer.Length();
  message->room.Shrink(message->size_bytes);
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
                                     : "start: the stream ended without a message"));
}

void RerankCall::OnMessage(std::shared_ptr<Message> message) {
  auto work = std::make_shared<Work>();
  work->message = message->view();
  if (const absl::Status status = Decode(work->message, work->chunk); !status.ok()) {
    return End(status);
  }
  // What the decoded documents take is held until they are scored, the message until it is copied.
  // The results to come are held from now on too: a small message may ask for many, and by the time
  // they are there a hundred more could have been read.
  auto held = std::make_shared<Admission::Hold>(environment_.admission->HoldNow(
      work->chunk.memory_bytes() + ResultsAhead(work->chunk), work->chunk.multiply_adds));
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
    ended = accepted.ok() ? WriteLocked() : FinishLocked(accepted);
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
  Admission::Hold room;
  const size_t query_bytes = start.query->data.size() + start.query->weights.size() * sizeof(float);
  if (!environment_.admission->TryHoldLasting(room, query_bytes)) return NoLastingRoom();
  query_ = std::move(start.query);
  documents = std::move(start.documents);
  MutexLock lock(&mutex_);
  query_room_ = std::move(room);
  if (start.top_k > 0) {
    top_k_.emplace(start.top_k);
    held_results_.emplace(start.top_k);
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

// ---------------------------------------------------------------------------------------------
// The end

void RerankCall::End(const absl::Status& status) {
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    ended = FinishLocked(status);
  }
  if (ended) LetGo();
}

bool RerankCall::FinishLocked(const absl::Status& status) {
  if (finished_) return false;
  finished_ = true;
  finished_at_ = absl::Now();
  if (absl::IsResourceExhausted(status)) {
    context_->AddTrailingMetadata(kPushback, IsOverload(status) ? kPushbackLater : kPushbackNever);
  }
  spdlog::debug("{} ended: {}", context_->method(), status.ToString());
  Finish(ToGrpcStatus(status));
  return true;
}

void RerankCall::LetGo() {
  // Memory and its accounting go together, and without the lock: giving room back grants it.
  struct {
    std::vector<Admission::Hold> unsent, writing;
    Admission::Hold query, held;
    std::vector<std::string> outgoing, encoded;
    std::optional<TopK> top_k;
  } freed;
  std::optional<Admission::WaitId> wait;
  std::optional<Batcher::LaneId> lane;
  {
    MutexLock lock(&mutex_);
    freed.unsent = std::exchange(unsent_rooms_, {});
    freed.writing = std::exchange(writing_rooms_, {});
    freed.query = std::move(query_room_);
    freed.held = std::move(held_room_);
    freed.outgoing = std::exchange(outgoing_, {});
    next_outgoing_ = 0;
    freed.encoded = encoder_.Take();
    top_k_.swap(freed.top_k);
    wait = wait_;
    lane = lane_;
  }
  if (wait.has_value()) environment_.admission->CancelWait(*wait);
  if (lane.has_value()) environment_.batcher->RemoveLane(*lane);
}

void RerankCall::Abort(const absl::Status& status) {
  End(status);
}

void RerankCall::OnFailed(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return End(Overloaded(status.message()));
  if (absl::IsInvalidArgument(status)) {  // What a caller may get wrong was refused long before.
    spdlog::error("{}: the backend refused a batch: {}", context_->method(), status.ToString());
    return End(absl::InternalError(status.message()));
  }
  Abort(status);
}

void RerankCall::OnCancel() {
  const bool late = absl::FromChrono(context_->deadline()) <= absl::Now();
  End(late ? absl::DeadlineExceededError("the call's deadline has passed")
           : absl::CancelledError("the client cancelled the call or is gone"));
}

void RerankCall::OnTick(absl::Time now) {
  const bool contended = environment_.admission->HasWaiters();
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    if (done_) return;
    if (finished_) {
      // The end waits behind a message that the client doesn't read.
      if (now - finished_at_ > environment_.stream_idle_timeout) context_->TryCancel();
      return;
    }
    const absl::Status status = StandsStill(now, contended);
    if (!status.ok()) ended = FinishLocked(status);
  }
  if (ended) LetGo();
}

absl::Status RerankCall::StandsStill(absl::Time now, bool contended) const {
  const absl::Duration idle = environment_.stream_idle_timeout;
  if (writing_ && now - write_since_ > idle) {
    return absl::DeadlineExceededError(
        absl::StrCat("stream_idle_timeout: no result was read for ", absl::FormatDuration(idle)));
  }
  if (waits_for_room_) {
    // A stream in progress may wait longer: its documents would have to be sent again.
    const absl::Duration longest = progress_.started() ? idle : environment_.max_admission_wait;
    if (now - read_since_ <= longest) return absl::OkStatus();
    return Overloaded(absl::StrCat("no room for the next message within max_pending_bytes for ",
                                   absl::FormatDuration(longest)));
  }
  // A client that waits for its scores is not idle.
  if (!progress_.reading() || progress_.owes_results()) return absl::OkStatus();
  const absl::Duration silent = now - std::max(read_since_, idle_since_);
  if (silent > idle) {
    return absl::DeadlineExceededError(absl::StrCat(
        "stream_idle_timeout: no message arrived whole for ", absl::FormatDuration(idle)));
  }
  if (contended && silent > environment_.max_silence_while_contended) {
    return absl::ResourceExhaustedError(
        absl::StrCat("overloaded: no message arrived whole for ", absl::FormatDuration(silent),
                     " while others waited for the room that is reserved for it"));
  }
  return absl::OkStatus();
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
