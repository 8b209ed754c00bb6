// MaxSim over ragged documents that lie packed in one buffer: the one interface of every backend.
//
//   score(q, d) = sum over query tokens i of  w_i * max over document tokens j of  <q_i, d_j>
//
// Shapes: query [query_tokens, dim], rows back to back.  Document d of a group is rows
// [first_row, first_row + length) of the group's rows, each `dim` elements long and
// `row_pitch_bytes` apart; documents may overlap, repeat and stand in any order.
//
// Precision: |score - exact| <= 1e-5 * sum_i |w_i| * max_j sum_k |q_ik * d_jk| + 1e-30, for every
// backend and element type.  The score of a (query, document) pair has the same bits whatever else
// is in the batch, wherever the rows lie, and however many threads there are; `return_matches`
// does not change it.  bfloat16 subnormals may count as 0.
//
// Special values: an element of a document's rows that is NaN or infinite, or a score beyond
// float32, makes that document kNonFinite with score -infinity; length 0 makes it kEmpty with score
// -infinity, before anything else is looked at.  Rows that no document covers are never looked at
// for that (they may be read).  A token of weight 0 contributes exactly 0.
//
// Errors: InvalidArgument    a group is inconsistent: the caller's bug, see CheckGroup
//         ResourceExhausted  device memory
//         Unavailable        the device is lost: this Scorer will not score again
//         Internal           any other driver error
//
// Threads: up to concurrency() calls of Score may run at a time; all other methods are thread-safe.
//
// Source: ColBERT, Khattab and Zaharia, SIGIR 2020; the offset/length form is that of
// flash-maxsim's rerank kernel.
#ifndef MAXSIMD_KERNELS_SCORER_H_
#define MAXSIMD_KERNELS_SCORER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "kernels/element_type.h"
#include "kernels/packed_buffer.h"

namespace maxsimd {

enum class Aggregation : uint8_t {
  kSum,
  kMean,  // The sum divided by sum_i w_i, which must be finite and > 0.
};

enum class DocumentStatus : uint8_t { kScored, kEmpty, kNonFinite };

struct DocumentRows {
  uint64_t first_row = 0;
  uint32_t length = 0;  // Tokens.
};

struct DocumentScore {
  float score = 0;
  DocumentStatus status = DocumentStatus::kScored;
};

struct TokenMatch {
  uint32_t document_token = 0;  // Row within the document; the lowest of equally similar rows.
  float similarity = 0;         // After normalisation, before the weight.
};

struct QueryView {
  ElementType element_type = ElementType::kFloat32;
  uint32_t tokens = 0;              // At least 1.
  uint32_t dim = 0;                 // At least 1.
  const std::byte* data = nullptr;  // Rows back to back; any alignment; every element finite.
  absl::Span<const float> weights;  // One finite weight per token; empty means 1 for each.
  Aggregation aggregation = Aggregation::kSum;
  bool normalize = false;       // Divide every query and document row by its Euclidean norm.
  bool return_matches = false;  // Fill QueryGroup::matches.
};

// One query and the documents to score against it.  Where the rows live and what they hold belongs
// to the group, so that a batch can mix groups of different kinds.
struct QueryGroup {
  QueryView query;

  ElementType element_type = ElementType::kFloat32;  // Of the rows; today the query's.
  const std::byte* rows = nullptr;                   // Row 0; any alignment.
  size_t row_pitch_bytes = 0;  // What Scorer::RowPitchBytes says for the type and dim.
  uint64_t row_count = 0;      // All of them may be read.

  absl::Span<const DocumentRows> documents;
  absl::Span<DocumentScore> scores;  // Out: one per document.
  // Out, with return_matches: [documents, query_tokens]; of documents that are not kScored,
  // unspecified.
  absl::Span<TokenMatch> matches;
};

struct ScoreBatch {
  // The used part of the packed buffer that the groups' rows lie in: what a device has to be sent.
  absl::Span<const std::byte> packed;
  absl::Span<QueryGroup> groups;
};

struct ScoreTimings {
  absl::Duration upload;  // 0 where scores are computed in place.
  absl::Duration compute;
};

class Scorer {
 public:
  virtual ~Scorer() = default;

  // Scores every document of every group.  Blocks until all outputs are written; on an error they
  // are unspecified.  The batch may be freed when it returns.
  virtual absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) = 0;

  virtual absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) = 0;

  // Bytes from one packed row to the next, at least dim * ElementBytes(type).
  virtual size_t RowPitchBytes(ElementType type, uint32_t dim) const = 0;

  // How many calls of Score may run at a time.
  virtual int concurrency() const = 0;

  virtual std::string backend() const = 0;               // "cpu", "cuda".
  virtual std::vector<std::string> devices() const = 0;  // Names for people.

  // About how fast it is, to size batches by: never exact, never 0.
  virtual double multiply_adds_per_second() const = 0;
};

// What every backend demands of a group; called by Score, so that each refuses the same.
absl::Status CheckGroup(const QueryGroup& group, const Scorer& scorer);

// sum_i w_i, or the number of tokens where there are no weights; compensated, so that it is what
// float64 holds whatever the order.
double WeightSum(absl::Span<const float> weights, uint32_t query_tokens);

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_SCORER_H_
