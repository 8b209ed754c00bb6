// A request as protobuf defines it, not yet validated: what the generated classes would hold, but
// for the embedding bytes, of which only the place in the message is known.
//
// Absent and empty submessages are the same, as everywhere in proto3 where a default is no value.
//
// Errors: InvalidArgument where the generated parser would fail.
// Memory: of the repeated fields, no more is held than the limits allow; the counts count all.
// Threads: pure functions.
#ifndef MAXSIMD_SERVER_CODEC_RAW_REQUEST_H_
#define MAXSIMD_SERVER_CODEC_RAW_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "server/codec/limits.h"
#include "server/codec/message_view.h"
#include "server/codec/request.h"

namespace maxsimd {

struct RawMatrix {
  int32_t element_type = 0;  // The contract's number, known or not.
  uint32_t dim = 0;
  size_t data_offset = 0;  // In the message.
  size_t data_size = 0;
};

// A repeated field: its first values, up to a bound, and how many there are.
template <typename T>
struct RawRepeated {
  std::vector<T> values;
  size_t count = 0;

  void Add(T value, size_t max_values) {
    if (count < max_values) values.push_back(value);
    ++count;
  }
};

struct RawQuery {
  RawMatrix tokens;
  RawRepeated<float> token_weights;
};

struct RawDocuments {
  RawMatrix tokens;
  RawRepeated<uint32_t> lengths;
  RawRepeated<uint64_t> offsets;

  DocumentIds ids;  // Complete where id_count and longest_id are within the limits.
  size_t id_count = 0;
  size_t longest_id = 0;
};

struct RawOptions {
  uint32_t top_k = 0;
  bool normalize = false;
  int32_t aggregation = 0;  // The contract's number, known or not.
  bool return_matches = false;
};

struct RawRequest {
  RawQuery query;
  RawDocuments documents;
  RawOptions options;
};

struct RawStreamRequest {
  enum class Kind { kNone, kStart, kDocuments } kind = Kind::kNone;
  RawRequest start;        // With kStart.
  RawDocuments documents;  // With kDocuments.
};

absl::StatusOr<RawRequest> ParseRequest(const MessageView& message, const Limits& limits);
absl::StatusOr<RawStreamRequest> ParseStreamRequest(const MessageView& message,
                                                    const Limits& limits);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_RAW_REQUEST_H_
