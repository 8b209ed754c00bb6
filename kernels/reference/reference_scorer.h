// The oracle: MaxSim in float64 by the shortest code that is plainly right, and the error bound
// that every backend is held to.
//
//   score(q, d) = sum over query tokens i of  w_i * max over document tokens j of  <q_i, d_j>
//   bound       = 1e-5 * sum_i |w_i| * max_j sum_k |q_ik * d_jk| + 1e-30
//
// With Aggregation::kMean the score and the bound's first term are divided by sum_i w_i.  With
// `normalize` all elements are those of the normalised rows; a row of norm 0 stays 0.
//
// Precision: every float32 product is exact in float64, and sums of 4,096 terms err by 5e-13 of the
// sum of magnitudes: ten million times less than the bound.
// Errors: as Scorer::Score.  Threads: all functions are thread-safe.
#ifndef MAXSIMD_KERNELS_REFERENCE_REFERENCE_SCORER_H_
#define MAXSIMD_KERNELS_REFERENCE_REFERENCE_SCORER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "kernels/element_type.h"
#include "kernels/packed_buffer.h"
#include "kernels/scorer.h"

namespace maxsimd {

struct ReferenceToken {
  uint32_t document_token = 0;  // The lowest of equally similar rows.
  double similarity = 0;
  double sum_abs = 0;  // max_j sum_k |q_ik * d_jk|.

  // How far a backend's similarity may lie from this one.
  double Bound() const { return 1e-5 * sum_abs + 1e-30; }
};

struct ReferenceDocument {
  DocumentStatus status = DocumentStatus::kScored;
  double score = 0;  // -infinity unless kScored.
  double bound = 0;  // 0 unless kScored.

  // A sum_k |q_ik * d_jk|, or the weighted sum of those, exceeds float32: kNonFinite is as right as
  // kScored.
  bool may_overflow = false;

  std::vector<ReferenceToken> tokens;  // One per query token; empty unless kScored.
};

// One entry per document of the group; reads its query, rows and documents, writes nothing.
std::vector<ReferenceDocument> ReferenceScores(const QueryGroup& group);

// <q_i, d_j> of one token of a document of the group, normalised where the query says so.
double ReferenceSimilarity(const QueryGroup& group, size_t document, uint32_t query_token,
                           uint32_t document_token);

class ReferenceScorer : public Scorer {
 public:
  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override;
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override;
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override {
    return dim * ElementBytes(type);
  }
  int concurrency() const override { return 1; }
  std::string backend() const override { return "reference"; }
  std::vector<std::string> devices() const override { return {"float64"}; }
  double multiply_adds_per_second() const override { return 1e8; }
};

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_REFERENCE_REFERENCE_SCORER_H_
