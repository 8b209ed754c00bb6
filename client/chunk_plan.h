// How a candidate set is cut into messages and calls that fit a server's limits.  Pure.
//
// Documents keep their order and are never split.  A message carries the union of its documents'
// rows once: documents that overlap and stand next to each other share a message as far as the hard
// limits allow, even past the target size; where they must part, the shared rows are sent in both.
// Offsets are rebased for each message (RebasedOffsets), so the same documents are scored whatever
// the cut.
//
// What fits one message of the target size goes as one unary call.  More goes as a stream, or
// several where a stream may not hold all.  A document too big for a stream's message goes in a
// unary call of its own, whose message may be bigger; a query too big for one makes all calls
// unary.
//
// Errors: ResourceExhausted, as a server would say, where one document exceeds a limit by itself;
// the message holds the limit's name and value.
#ifndef MAXSIMD_CLIENT_CHUNK_PLAN_H_
#define MAXSIMD_CLIENT_CHUNK_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {

// 256 KiB to 1 MiB a message is where a stream is fastest; larger ones only cost memory.
inline constexpr uint64_t kTargetChunkBytes = uint64_t{1} << 20;

enum class RpcChoice {
  kAuto,    // As above.
  kUnary,   // Rerank only, in messages as big as may be.
  kStream,  // RerankStream, except for documents that only fit a Rerank.
};

struct PlanOptions {
  RpcChoice rpc = RpcChoice::kAuto;
  uint64_t target_bytes = kTargetChunkBytes;  // Of a stream's message.
};

struct DocumentLayout {
  uint64_t row_bytes = 0;
  uint64_t multiply_adds_per_row = 0;  // query_tokens * dim.
  absl::Span<const uint32_t> lengths;
  absl::Span<const uint64_t> offsets;  // Empty: back to back from row 0.
  absl::Span<const std::string> ids;
};

struct RowRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// One message's documents, and the rows of the input that it carries, in this order.
struct Chunk {
  size_t first_document = 0;
  size_t document_count = 0;
  std::vector<RowRange> ranges;  // Ascending, neither touching nor overlapping.
};

struct PlannedCall {
  bool stream = false;        // RerankStream; else Rerank, with exactly one chunk.
  std::vector<Chunk> chunks;  // The first goes with the query and may be without documents.
};

// `start_bytes`: what query and options take on the wire.  A limit of 0 is none.
absl::StatusOr<std::vector<PlannedCall>> PlanCalls(const DocumentLayout& layout,
                                                   const v1::Limits& limits, uint64_t start_bytes,
                                                   const PlanOptions& options = {});

// First row of each of the chunk's documents within the chunk's message; 0 for empty documents.
std::vector<uint64_t> RebasedOffsets(const DocumentLayout& layout, const Chunk& chunk);

// Saturating, so that a product beyond 64 bits exceeds every limit.
uint64_t SaturatingMultiply(uint64_t a, uint64_t b);
uint64_t SaturatingAdd(uint64_t a, uint64_t b);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CHUNK_PLAN_H_
