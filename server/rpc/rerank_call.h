// One call of Rerank or RerankStream, from its headers to its end: a generic bidi reactor over
// ByteBuffers for both.
//
// A typed or unary handler would run only once the whole message is in memory (60 MB before
// anything could be refused); this one exists from the headers on, so that a call is admitted
// before its first byte is read, and HTTP/2 flow control holds back what has not been asked for.
//
// Life: Begin (admit) -> RequestRead (reserve room) -> OnReadDone (decode, submit) -> OnScored
// (encode, write) -> Finish, exactly once on every path -> OnDone.  It owns itself until OnDone;
// queued work and batches share it, and find it `gone` once it has finished.
//
// Threads: gRPC's, the batcher's and the registry's; all state is behind one lock.  Lock order: the
// call's, then the batcher's or the admission's.  Those call back without their locks, but what may
// make them call back (submitting work, reserving or giving back room) is done without the call's.
#ifndef MAXSIMD_SERVER_RPC_RERANK_CALL_H_
#define MAXSIMD_SERVER_RPC_RERANK_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

#include "kernels/mutex.h"
#include "server/batching/batcher.h"
#include "server/batching/work.h"
#include "server/codec/encode.h"
#include "server/codec/limits.h"
#include "server/codec/request.h"
#include "server/rpc/admission.h"
#include "server/rpc/call_progress.h"
#include "server/rpc/held_results.h"
#include "server/rpc/top_k.h"

namespace maxsimd {

class CallRegistry;

// What all calls of a server share; outlives them.
struct CallEnvironment {
  Limits limits;
  UnitLimits unit_limits;
  absl::Duration stream_idle_timeout = absl::Seconds(60);
  // How long a new call may wait for room before it is refused.
  absl::Duration max_admission_wait = absl::Seconds(1);
  // How long a read's room may stay reserved for a client that sends nothing while others wait for
  // room; without this a few silent calls could hold the whole budget for stream_idle_timeout.
  absl::Duration max_silence_while_contended = absl::Seconds(5);

  Batcher* batcher = nullptr;
  Admission* admission = nullptr;
  CallRegistry* registry = nullptr;
};

class RerankCall final : public grpc::ServerGenericBidiReactor,
                         public Recipient,
                         public std::enable_shared_from_this<RerankCall> {
 public:
  enum class Method { kRerank, kRerankStream };

  // Starts the call; the returned reactor deletes itself.
  static RerankCall* Start(const CallEnvironment& environment,
                           grpc::GenericCallbackServerContext* context, Method method);

  RerankCall(const CallEnvironment& environment, grpc::GenericCallbackServerContext* context,
             Method method);

  // Ends calls that have stood still for too long.
  void OnTick(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the call with `status`, unless it has ended; see Finish below.
  void Abort(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // grpc::ServerGenericBidiReactor.
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override;
  void OnDone() override;

  // Recipient.
  bool gone() const override { return finished_; }
  void OnScored(absl::Span<const ScoredDocuments> scored, const BatchTimings& timings) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCopied() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnFailed(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A message and the room it takes.
  struct Message;

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // RESOURCE_EXHAUSTED carries when to retry in the trailer grpc-retry-pushback-ms; -1 is never.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Not ok if the call has stood still for too long at `now`; `contended`: others wait for room.
  absl::Status StandsStill(absl::Time now, bool contended) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What follows, without the lock, once the call has ended.
  void LetGo() ABSL_LOCKS_EXCLUDED(mutex_);

  // Reserves room for the next message, if there is one to be read now.
  void RequestRead() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRoom(Admission::Hold room) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnMessage(std::shared_ptr<Message> message) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnHalfClose() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Decode(const MessageView& view, DocumentChunk& documents)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a message's documents and answers those without tokens.
  absl::Status Accept(const DocumentChunk& documents, uint64_t& first_index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts what the results of a message that are known or held from now on take.
  absl::Status HoldResults(const DocumentChunk& documents) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HoldUnsent(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddResult(uint64_t index, const DocumentScore& score, absl::string_view id,
                 absl::Span<const TokenMatch> matches) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AddScores(const ScoredDocuments& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Writes the next message, if none is being written; with the last one it ends the call and
  // returns true.
  bool WriteLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool nothing_outgoing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return next_outgoing_ == outgoing_.size();
  }
  void EncodeEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallEnvironment& environment_;
  grpc::GenericCallbackServerContext* const context_;
  const Method method_;
  const absl::Time started_at_;
  std::shared_ptr<RerankCall> self_;  // Until OnDone.

  // Written before the first message is submitted, read only after.
  std::shared_ptr<const Query> query_;

  std::atomic<bool> finished_{false};  // Written under mutex_.

  Mutex mutex_;
  CallProgress progress_ ABSL_GUARDED_BY(mutex_);
  bool entered_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Batcher::LaneId> lane_ ABSL_GUARDED_BY(mutex_);

  // Reading.
  grpc::ByteBuffer read_buffer_;  // gRPC's while a read is outstanding.
  Admission::Hold read_room_ ABSL_GUARDED_BY(mutex_);
  std::optional<Admission::WaitId> wait_ ABSL_GUARDED_BY(mutex_);
  bool waits_for_room_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time read_since_ ABSL_GUARDED_BY(mutex_);  // When it began to wait for room, or to read.

  // Results.
  std::optional<TopK> top_k_ ABSL_GUARDED_BY(mutex_);
  std::optional<HeldResults> held_results_ ABSL_GUARDED_BY(mutex_);  // With top_k.
  Admission::Hold query_room_ ABSL_GUARDED_BY(mutex_);
  Admission::Hold held_room_ ABSL_GUARDED_BY(mutex_);
  ResponseEncoder encoder_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> outgoing_ ABSL_GUARDED_BY(mutex_);  // From next_outgoing_ on.
  size_t next_outgoing_ ABSL_GUARDED_BY(mutex_) = 0;
  // Room of results in encoder_, and of those in outgoing_ and write_buffer_.
  std::vector<Admission::Hold> unsent_rooms_ ABSL_GUARDED_BY(mutex_);
  std::vector<Admission::Hold> writing_rooms_ ABSL_GUARDED_BY(mutex_);
  size_t unsent_lane_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // The parts that the lane counts.
  size_t writing_lane_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer write_buffer_;  // gRPC's while a write is outstanding.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool end_encoded_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time write_since_ ABSL_GUARDED_BY(mutex_);
  absl::Time idle_since_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // The last write's end.

  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time finished_at_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_score_at_ ABSL_GUARDED_BY(mutex_);
  Summary summary_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_RERANK_CALL_H_
