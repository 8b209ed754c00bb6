// Wire format to validated request, in one pass over the message that skips the embedding bytes.
//
// The embedding bytes of the documents are not touched: DocumentChunk says where in the message
// they lie, and MessageView::CopyRows gathers them straight into the packed buffer.  The query's
// are copied out and checked to be finite.
//
// Exactly what protobuf accepts is accepted: unknown fields are skipped (groups too), fields come
// in any order, repeated scalars packed or not, later singular fields override or merge as the
// generated parser does it, `start` and `documents` of the oneof displace each other.  The fuzz
// test holds this decoder against that parser.
//
// Errors: InvalidArgument    malformed, or a shape, type or option is wrong: the message holds the
//                            field's path, whose last component is a word of its own, and what was
//                            expected ("documents.lengths: sum is 12, tensor has 10 rows")
//         ResourceExhausted  a published limit is exceeded: the message holds the limit's name and
//                            value ("max_dim: 8192 exceeds 4096")
// Memory: bounded by the message's size times a small constant; counts are checked before anything
// is reserved for them.
//
// Threads: pure functions.
#ifndef MAXSIMD_SERVER_CODEC_DECODE_H_
#define MAXSIMD_SERVER_CODEC_DECODE_H_

#include "absl/status/statusor.h"

#include "server/codec/limits.h"
#include "server/codec/message_view.h"
#include "server/codec/request.h"

namespace maxsimd {

// A RerankRequest.
absl::StatusOr<StartMessage> DecodeRerank(const MessageView& message, const Limits& limits,
                                          const UnitLimits& unit_limits);

// The first RerankStreamRequest of a stream, which must carry `start`.
absl::StatusOr<StartMessage> DecodeStreamStart(const MessageView& message, const Limits& limits,
                                               const UnitLimits& unit_limits);

// A later RerankStreamRequest, which must carry `documents`, to be scored against `query`.
absl::StatusOr<DocumentChunk> DecodeStreamDocuments(const MessageView& message, const Query& query,
                                                    const Limits& limits,
                                                    const UnitLimits& unit_limits);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_DECODE_H_
