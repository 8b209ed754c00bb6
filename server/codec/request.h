// What a decoded, validated request is: the query, and documents as units of packing.
//
// Nothing in here can be wrong any more: whatever a client may get wrong was refused by decode.h.
#ifndef MAXSIMD_SERVER_CODEC_REQUEST_H_
#define MAXSIMD_SERVER_CODEC_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "kernels/scorer.h"

namespace maxsimd {

// A call's query; immutable once decoded, shared by the call's chunks and the batches they ride in.
struct Query {
  ElementType element_type = ElementType::kFloat32;
  uint32_t tokens = 0;
  uint32_t dim = 0;
  std::vector<std::byte> data;  // Rows back to back.
  std::vector<float> weights;   // One per token, or none.
  Aggregation aggregation = Aggregation::kSum;
  bool normalize = false;
  bool return_matches = false;

  uint64_t hash = 0;  // Of everything above: a first guess at equality, never the answer.

  QueryView view() const;
  size_t row_bytes() const { return dim * ElementBytes(element_type); }

  // Whether every document scores the same bits against both: the two may share a query group.
  friend bool operator==(const Query& a, const Query& b);
};

// A unit of packing: a connected run of rows (one document, documents that overlap, or small ones
// that lie back to back) and the documents in it.  It is copied once and never split over batches.
struct Unit {
  uint64_t first_row = 0;  // In the message's tensor.
  uint64_t row_count = 0;
  uint32_t first = 0;  // Its documents are DocumentChunk::order[first, first + count).
  uint32_t count = 0;
  uint64_t multiply_adds = 0;  // sum(lengths) * query_tokens * dim.
  size_t result_bytes = 0;     // About what its results take, in memory and on the wire.
};

// Names of documents, in one allocation.  Empty where the request has none.
class DocumentIds {
 public:
  void Add(absl::string_view id);
  bool empty() const { return ends_.empty(); }
  size_t size() const { return ends_.size(); }
  absl::string_view operator[](size_t document) const;  // "" where there are none.
  size_t memory_bytes() const { return bytes_.capacity() + ends_.capacity() * sizeof(uint32_t); }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

// The documents of one message.
struct DocumentChunk {
  size_t data_offset = 0;  // Where the rows begin in the message.
  uint64_t row_count = 0;
  size_t row_bytes = 0;

  std::vector<DocumentRows> documents;  // In the request's order; rows of the message's tensor.
  std::vector<uint32_t> order;          // The documents that have tokens, by first row.
  std::vector<Unit> units;              // By first row; together they hold `order`.
  std::vector<uint32_t> empty;          // The documents without tokens.
  DocumentIds ids;

  uint64_t document_tokens = 0;  // sum(lengths).
  uint64_t multiply_adds = 0;

  size_t memory_bytes() const;  // Beside the message itself.
};

// A Rerank message, or the first one of a RerankStream.
struct StartMessage {
  std::shared_ptr<const Query> query;
  uint32_t top_k = 0;
  DocumentChunk documents;
};

// About what one result takes; that of a document without tokens has no matches.
size_t ResultBytes(const Query& query, absl::string_view id);
size_t EmptyResultBytes(absl::string_view id);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_REQUEST_H_
