// The request messages on the wire, with the embeddings viewed instead of copied.  Pure.
//
// A generated message would copy all embeddings into its `bytes` field and again when it is
// serialized.  Here the few bytes around them are written by hand and the embeddings stay where
// they are: a message is a list of parts.  The bytes are those that the generated code would write.
//
// Lifetime: borrowed parts view the input.
// Source: protobuf's wire format, https://protobuf.dev/programming-guides/encoding.
#ifndef MAXSIMD_CLIENT_MESSAGE_ENCODER_H_
#define MAXSIMD_CLIENT_MESSAGE_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "client/chunk_plan.h"
#include "client/rerank_types.h"

namespace maxsimd {

struct MessagePart {
  std::string owned;
  absl::string_view borrowed;  // Follows `owned`.
};
using MessageParts = std::vector<MessagePart>;

// A RerankRequest with the chunk's documents.
MessageParts EncodeRequest(const RerankInput& input, const Chunk& chunk);

// RerankStreamRequests: the first of a stream, and a later one.
MessageParts EncodeStreamStart(const RerankInput& input, const Chunk& chunk);
MessageParts EncodeStreamDocuments(const RerankInput& input, const Chunk& chunk);

// What query and options take in a RerankRequest.
uint64_t StartBytes(const RerankInput& input);

uint64_t TotalBytes(const MessageParts& parts);

// What the planner needs to know of an input.
DocumentLayout LayoutOf(const RerankInput& input);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_MESSAGE_ENCODER_H_
