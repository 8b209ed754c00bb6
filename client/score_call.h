// One attempt at a Rerank or RerankStream call: messages out and scores in, at the same time.
//
// Both methods are spoken as a stream of raw messages in each direction, which is what they are on
// the wire; so embeddings needn't pass through a generated message (see message_encoder.h).
//
// Threads: everything runs on gRPC's threads, so many calls cost no thread each.  `done` is called
// exactly once, on such a thread, after the call has let go of the channel: it may start the next
// call.  Results that were received before an error are in the outcome.
#ifndef MAXSIMD_CLIENT_SCORE_CALL_H_
#define MAXSIMD_CLIENT_SCORE_CALL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "client/message_encoder.h"
#include "client/rerank_types.h"

namespace maxsimd {

// Milliseconds until a repetition is welcome; negative: never.
inline constexpr char kPushbackTrailer[] = "grpc-retry-pushback-ms";

struct CallOutcome {
  grpc::Status status;
  std::optional<std::string> pushback;        // The trailer's value.
  std::vector<v1::ScoredDocument> documents;  // In the order of arrival.
  std::optional<v1::RerankSummary> summary;
};

// What to send.  A message is asked for when it can be sent, from first to last, on gRPC's threads.
struct CallMessages {
  bool stream = false;  // RerankStream.
  size_t count = 1;     // At least 1.
  std::function<grpc::ByteBuffer(size_t index)> message;
};

using CallDone = std::function<void(CallOutcome outcome)>;

void StartScoreCall(const std::shared_ptr<grpc::Channel>& channel, CallMessages messages,
                    absl::Duration timeout, CallDone done);

// The same, waiting for the end.
CallOutcome RunScoreCall(const std::shared_ptr<grpc::Channel>& channel, CallMessages messages,
                         absl::Duration timeout);

// Borrowed parts are sent in place, holding on to `owner`, or are copied where there is none.
grpc::ByteBuffer ToByteBuffer(const MessageParts& parts, const std::shared_ptr<const void>& owner);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_SCORE_CALL_H_
