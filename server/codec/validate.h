// All validation of requests: what comes out of here is right, whatever the client sent.
//
// Errors: as decode.h says.
// Threads: pure functions.
#ifndef MAXSIMD_SERVER_CODEC_VALIDATE_H_
#define MAXSIMD_SERVER_CODEC_VALIDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/codec/limits.h"
#include "server/codec/message_view.h"
#include "server/codec/raw_request.h"
#include "server/codec/request.h"

namespace maxsimd {

// ResourceExhausted, naming the limit, when `value` exceeds it.
absl::Status CheckLimit(absl::string_view name, uint64_t value, uint64_t limit);

// Copies the query's embedding bytes out of the message.
absl::StatusOr<Query> ValidateQuery(const RawQuery& raw, const RawOptions& options,
                                    const MessageView& message, const Limits& limits);

absl::StatusOr<DocumentChunk> ValidateDocuments(RawDocuments raw, const Query& query,
                                                const Limits& limits,
                                                const UnitLimits& unit_limits);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_VALIDATE_H_
