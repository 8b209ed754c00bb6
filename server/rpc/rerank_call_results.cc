// RerankCall's way out: what results take, from scores to messages, and writing them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/support/slice.h"

#include "server/rpc/overload.h"
#include "server/rpc/rerank_call.h"

namespace maxsimd {
namespace {

grpc::ByteBuffer ToByteBuffer(std::string message) {
  auto* const owned = new std::string(std::move(message));
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owned);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

absl::Status RerankCall::HoldResults(const DocumentChunk& documents) {
  if (held_results_.has_value()) {
    held_results_->Add(*query_, documents);
    const uint64_t limit = environment_.limits.max_held_result_bytes;
    if (held_results_->bytes() > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("max_held_result_bytes: the results held for top_k may take ",
                       held_results_->bytes(), ", which exceeds ", limit));
    }
    if (!environment_.admission->TryHoldLasting(held_room_, held_results_->bytes())) {
      return NoLastingRoom();
    }
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
  if (nothing_outgoing()) {
    outgoing_ = encoder_.Take();
    next_outgoing_ = 0;
    writing_rooms_ = std::exchange(unsent_rooms_, {});
    writing_lane_bytes_ = std::exchange(unsent_lane_bytes_, 0);
  }
  if (nothing_outgoing()) return false;
  write_buffer_ = ToByteBuffer(std::move(outgoing_[next_outgoing_++]));
  writing_ = true;
  write_since_ = absl::Now();
  if (!end_encoded_ || !nothing_outgoing()) {
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
      encoder_.Add(result.index, result.score, result.id(), result.matches());
    }
  }
  summary_.total = std::max(last_score_at_, started_at_) - started_at_;
  encoder_.AddSummary(summary_);
}

void RerankCall::OnWriteDone(bool ok) {
  std::vector<Admission::Hold> sent;  // Given back without the lock.
  size_t lane_bytes = 0;
  std::optional<Batcher::LaneId> lane;
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (finished_ || !ok) return;  // A write fails only when the call is cancelled.
    lane = lane_;
    idle_since_ = absl::Now();
    if (nothing_outgoing()) {
      sent = std::exchange(writing_rooms_, {});
      for (const Admission::Hold& room : sent) progress_.OnSent(room.bytes());
      lane_bytes = std::exchange(writing_lane_bytes_, 0);
    }
    ended = WriteLocked();
  }
  if (ended) return LetGo();
  if (lane_bytes > 0) environment_.batcher->ReleaseResults(*lane, lane_bytes);
  RequestRead();
}

}  // namespace maxsimd
