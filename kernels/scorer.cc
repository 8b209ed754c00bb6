#include "kernels/scorer.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace maxsimd {

absl::Status CheckGroup(const QueryGroup& group, const Scorer& scorer) {
  const QueryView& query = group.query;
  if (query.tokens == 0 || query.dim == 0 || query.data == nullptr) {
    return absl::InvalidArgumentError("query: no tokens");
  }
  if (!query.weights.empty() && query.weights.size() != query.tokens) {
    return absl::InvalidArgumentError("weights: not one per query token");
  }
  if (query.aggregation == Aggregation::kMean && !(WeightSum(query.weights, query.tokens) > 0)) {
    return absl::InvalidArgumentError("weights: a mean needs a sum > 0");
  }
  if (group.element_type != query.element_type) {
    return absl::InvalidArgumentError("element_type: not the query's");
  }
  if (group.row_pitch_bytes != scorer.RowPitchBytes(group.element_type, query.dim)) {
    return absl::InvalidArgumentError("row_pitch_bytes: not the backend's");
  }
  if (group.scores.size() != group.documents.size()) {
    return absl::InvalidArgumentError("scores: not one per document");
  }
  if (query.return_matches && group.matches.size() != group.documents.size() * query.tokens) {
    return absl::InvalidArgumentError("matches: not one per document and query token");
  }
  for (const DocumentRows& document : group.documents) {
    if (document.first_row > group.row_count ||
        document.length > group.row_count - document.first_row) {
      return absl::InvalidArgumentError(
          absl::StrCat("documents: rows from ", document.first_row, " are outside the buffer"));
    }
  }
  return absl::OkStatus();
}

double WeightSum(absl::Span<const float> weights, uint32_t query_tokens) {
  if (weights.empty()) return query_tokens;
  double sum = 0;
  double lost = 0;  // Neumaier: what the additions so far rounded away.
  for (const double weight : weights) {
    const double next = sum + weight;
    lost += std::abs(sum) >= std::abs(weight) ? (sum - next) + weight : (weight - next) + sum;
    sum = next;
  }
  return sum + lost;
}

}  // namespace maxsimd
