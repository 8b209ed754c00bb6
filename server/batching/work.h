// What is queued for scoring: the documents of one message, and whoever gets their scores.
#ifndef MAXSIMD_SERVER_BATCHING_WORK_H_
#define MAXSIMD_SERVER_BATCHING_WORK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "kernels/scorer.h"
#include "server/codec/message_view.h"
#include "server/codec/request.h"

namespace maxsimd {

struct Work;

// Scores of some documents of one message, in the order of `documents`.
struct ScoredDocuments {
  const Work* work = nullptr;
  absl::Span<const uint32_t> documents;  // Positions in the message.
  absl::Span<const DocumentScore> scores;
  absl::Span<const TokenMatch> matches;  // [documents, query_tokens] with return_matches, or none.
  size_t result_bytes = 0;               // To be given back with Batcher::ReleaseResults.
};

// What one batch took; a call that rode in several sums them up.
struct BatchTimings {
  absl::Duration queue;  // Of the earliest received message in it.
  absl::Duration pack;
  absl::Duration upload;
  absl::Duration compute;
};

// The caller's side of a lane.  Called without any of the batcher's locks held, on the thread that
// scored or copied; must not block.
class Recipient {
 public:
  virtual ~Recipient() = default;

  // Whether the call is gone: its documents are then dropped before they are packed or launched.
  virtual bool gone() const = 0;

  // Once per batch that the call has documents in.
  virtual void OnScored(absl::Span<const ScoredDocuments> scored, const BatchTimings& timings) = 0;

  // The rows of one message have all been copied: its bytes are freed, the next one may be read.
  virtual void OnCopied() = 0;

  // The batch failed, or there is no device any more.
  virtual void OnFailed(const absl::Status& status) = 0;
};

// The documents of one message.  Shared by the lane and the batches that its units ride in.
struct Work {
  std::shared_ptr<const Query> query;
  DocumentChunk chunk;
  uint64_t first_index = 0;  // Of the message's first document, counted over the call.
  absl::Time received;
  std::shared_ptr<Recipient> recipient;

  // The message and what keeps its memory, until its last row has been copied.
  MessageView message;
  std::shared_ptr<void> message_owner;

  // Released when the last of its documents has been scored (or dropped).
  std::shared_ptr<void> owner;

  // Units that are not copied yet.
  std::atomic<size_t> units_to_copy{0};
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_BATCHING_WORK_H_
