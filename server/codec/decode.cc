#include "server/codec/decode.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"

#include "kernels/status_macros.h"
#include "server/codec/raw_request.h"
#include "server/codec/validate.h"

namespace maxsimd {
namespace {

// Protobuf has no messages of 2 GiB and more, whatever the limit says.
constexpr uint64_t kMaxProtobufBytes = std::numeric_limits<int32_t>::max();

absl::StatusOr<StartMessage> ValidateStart(RawRequest raw, const MessageView& message,
                                           const Limits& limits, const UnitLimits& unit_limits) {
  ASSIGN_OR_RETURN(Query query, ValidateQuery(raw.query, raw.options, message, limits));
  StartMessage start;
  start.query = std::make_shared<const Query>(std::move(query));
  start.top_k = raw.options.top_k;
  ASSIGN_OR_RETURN(start.documents,
                   ValidateDocuments(std::move(raw.documents), *start.query, limits, unit_limits));
  return start;
}

absl::StatusOr<RawStreamRequest> ParseStream(const MessageView& message, const Limits& limits) {
  RETURN_IF_ERROR(CheckLimit("max_stream_message_bytes", message.size(),
                             std::min(limits.max_stream_message_bytes, kMaxProtobufBytes)));
  ASSIGN_OR_RETURN(RawStreamRequest raw, ParseStreamRequest(message, limits));
  if (raw.kind == RawStreamRequest::Kind::kNone) {
    return absl::InvalidArgumentError("message: has neither start nor documents");
  }
  return raw;
}

}  // namespace

absl::StatusOr<StartMessage> DecodeRerank(const MessageView& message, const Limits& limits,
                                          const UnitLimits& unit_limits) {
  RETURN_IF_ERROR(CheckLimit("max_message_bytes", message.size(),
                             std::min(limits.max_message_bytes, kMaxProtobufBytes)));
  ASSIGN_OR_RETURN(RawRequest raw, ParseRequest(message, limits));
  return ValidateStart(std::move(raw), message, limits, unit_limits);
}

absl::StatusOr<StartMessage> DecodeStreamStart(const MessageView& message, const Limits& limits,
                                               const UnitLimits& unit_limits) {
  ASSIGN_OR_RETURN(RawStreamRequest raw, ParseStream(message, limits));
  if (raw.kind != RawStreamRequest::Kind::kStart) {
    return absl::InvalidArgumentError(
        "message: the first one of a stream must carry start, not documents");
  }
  return ValidateStart(std::move(raw.start), message, limits, unit_limits);
}

absl::StatusOr<DocumentChunk> DecodeStreamDocuments(const MessageView& message, const Query& query,
                                                    const Limits& limits,
                                                    const UnitLimits& unit_limits) {
  ASSIGN_OR_RETURN(RawStreamRequest raw, ParseStream(message, limits));
  if (raw.kind != RawStreamRequest::Kind::kDocuments) {
    return absl::InvalidArgumentError(
        "message: a second start; all but the first one of a stream must carry documents");
  }
  return ValidateDocuments(std::move(raw.documents), query, limits, unit_limits);
}

}  // namespace maxsimd
