// What a rerank call takes and gives, as views of the caller's memory.
//
//   score(q, d) = sum over query tokens i of  w_i * max over document tokens j of  <q_i, d_j>
//
// Shapes: query [query_tokens, dim], documents [rows, dim], both row-major and little-endian;
// document i is rows [offsets[i], offsets[i] + lengths[i]), or back to back from row 0 where there
// are no offsets.  The meanings are those of proto/maxsimd/v1/rerank.proto.
//
// Lifetime: all views must live until the call returns.  See RerankInput::owner for what may be
// read after that.
#ifndef MAXSIMD_CLIENT_RERANK_TYPES_H_
#define MAXSIMD_CLIENT_RERANK_TYPES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "client/chunk_plan.h"
#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {

struct TokenMatrixView {
  v1::ElementType element_type = v1::ELEMENT_TYPE_UNSPECIFIED;
  uint32_t dim = 0;
  absl::string_view data;  // The bytes of all rows; any alignment.
};

struct RerankInput {
  TokenMatrixView query;
  absl::Span<const float> weights;  // One per query token, or none.

  TokenMatrixView documents;
  absl::Span<const uint32_t> lengths;
  absl::Span<const uint64_t> offsets;  // One per document, or none.
  absl::Span<const std::string> ids;   // One per document, or none.

  v1::RerankOptions options;

  // Keeps what `documents.data` and `query.data` view alive.  A connection may still be reading
  // embeddings after a call has failed (its transport has them in a write that can't be withdrawn),
  // so they are sent in place only where the client can hold on to them; without an owner each
  // chunk is copied once.
  std::shared_ptr<const void> owner;
};

struct CallOptions {
  // For the whole of the work: limits, all parts, all attempts and the waits between them.
  absl::Duration timeout = absl::InfiniteDuration();
  PlanOptions plan = {};
};

struct RerankResult {
  // With top_k the best ones, best first; else every document, in the order of the request.
  std::vector<v1::ScoredDocument> documents;
  v1::RerankSummary summary;  // Summed over the calls that the work was split into.
};

// Bytes of one element, 0 for what is no element type.
constexpr uint64_t ElementBytes(v1::ElementType type) {
  switch (type) {
    case v1::ELEMENT_TYPE_FLOAT32:
      return 4;
    case v1::ELEMENT_TYPE_FLOAT16:
    case v1::ELEMENT_TYPE_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

constexpr uint64_t RowBytes(const TokenMatrixView& matrix) {
  return ElementBytes(matrix.element_type) * matrix.dim;
}

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_RERANK_TYPES_H_
