#include "kernels/reference/reference_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/time/clock.h"

#include "kernels/element_conversion.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestFloat = std::numeric_limits<float>::max();

// [rows, dim] in float64.
struct Matrix {
  size_t dim;
  std::vector<double> values;
  const double* Row(size_t row) const { return &values[row * dim]; }
};

// Squares of float32, subnormals included, neither overflow nor underflow in float64.
void NormalizeRow(double* row, size_t dim) {
  double sum_of_squares = 0;
  for (size_t k = 0; k < dim; ++k) sum_of_squares += row[k] * row[k];
  if (sum_of_squares == 0) return;
  for (size_t k = 0; k < dim; ++k) row[k] /= std::sqrt(sum_of_squares);
}

Matrix LoadRows(ElementType type, const std::byte* data, size_t pitch_bytes, size_t rows,
                size_t dim, bool normalize) {
  Matrix matrix{dim, std::vector<double>(rows * dim)};
  for (size_t row = 0; row < rows; ++row) {
    double* const out = &matrix.values[row * dim];
    for (size_t k = 0; k < dim; ++k) out[k] = LoadElement(type, data + row * pitch_bytes, k);
    if (normalize) NormalizeRow(out, dim);
  }
  return matrix;
}

ReferenceToken ScoreToken(const double* query, const Matrix& document, size_t length) {
  ReferenceToken best{.similarity = -kInfinity};
  for (size_t row = 0; row < length; ++row) {
    const double* const token = document.Row(row);
    double similarity = 0;
    double sum_abs = 0;
    for (size_t k = 0; k < document.dim; ++k) {
      similarity += query[k] * token[k];
      sum_abs += std::abs(query[k] * token[k]);
    }
    if (similarity > best.similarity) {
      best.similarity = similarity;
      best.document_token = static_cast<uint32_t>(row);
    }
    best.sum_abs = std::max(best.sum_abs, sum_abs);
  }
  return best;
}

ReferenceDocument NotScored(DocumentStatus status) {
  ReferenceDocument result;
  result.status = status;
  result.score = -kInfinity;
  return result;
}

ReferenceDocument Aggregate(const QueryView& query, std::vector<ReferenceToken> tokens) {
  ReferenceDocument result;
  double sum = 0;
  double sum_abs = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double weight = query.weights.empty() ? 1.0 : double{query.weights[i]};
    sum += weight * tokens[i].similarity;
    sum_abs += std::abs(weight) * tokens[i].sum_abs;
    if (tokens[i].sum_abs > kLargestFloat) result.may_overflow = true;
  }
  if (sum_abs > kLargestFloat) result.may_overflow = true;
  const double divisor =
      query.aggregation == Aggregation::kMean ? WeightSum(query.weights, query.tokens) : 1;
  result.score = sum / divisor;
  result.bound = 1e-5 * sum_abs / divisor + 1e-30;
  if (!std::isfinite(static_cast<float>(result.score))) {
    return NotScored(DocumentStatus::kNonFinite);
  }
  result.tokens = std::move(tokens);
  return result;
}

ReferenceDocument ScoreDocument(const QueryGroup& group, const Matrix& query,
                                const DocumentRows& document) {
  if (document.length == 0) return NotScored(DocumentStatus::kEmpty);
  const std::byte* const first = group.rows + document.first_row * group.row_pitch_bytes;
  for (size_t row = 0; row < document.length; ++row) {
    if (!AllFinite(group.element_type, first + row * group.row_pitch_bytes, query.dim)) {
      return NotScored(DocumentStatus::kNonFinite);
    }
  }
  const Matrix rows = LoadRows(group.element_type, first, group.row_pitch_bytes, document.length,
                               query.dim, group.query.normalize);
  std::vector<ReferenceToken> tokens;
  for (size_t i = 0; i < group.query.tokens; ++i) {
    tokens.push_back(ScoreToken(query.Row(i), rows, document.length));
  }
  return Aggregate(group.query, std::move(tokens));
}

}  // namespace

std::vector<ReferenceDocument> ReferenceScores(const QueryGroup& group) {
  const QueryView& view = group.query;
  const Matrix query =
      LoadRows(view.element_type, view.data, view.dim * ElementBytes(view.element_type),
               view.tokens, view.dim, view.normalize);
  std::vector<ReferenceDocument> results;
  for (const DocumentRows& document : group.documents) {
    results.push_back(ScoreDocument(group, query, document));
  }
  return results;
}

double ReferenceSimilarity(const QueryGroup& group, size_t document, uint32_t query_token,
                           uint32_t document_token) {
  const QueryView& view = group.query;
  const size_t query_pitch = view.dim * ElementBytes(view.element_type);
  const size_t row = group.documents[document].first_row + document_token;
  const Matrix query = LoadRows(view.element_type, view.data + query_token * query_pitch,
                                query_pitch, 1, view.dim, view.normalize);
  const Matrix token = LoadRows(group.element_type, group.rows + row * group.row_pitch_bytes,
                                group.row_pitch_bytes, 1, view.dim, view.normalize);
  return ScoreToken(query.Row(0), token, 1).similarity;
}

absl::StatusOr<ScoreTimings> ReferenceScorer::Score(const ScoreBatch& batch) {
  const absl::Time start = absl::Now();
  for (QueryGroup& group : batch.groups) {
    RETURN_IF_ERROR(CheckGroup(group, *this));
    const std::vector<ReferenceDocument> results = ReferenceScores(group);
    for (size_t d = 0; d < results.size(); ++d) {
      group.scores[d] = {static_cast<float>(results[d].score), results[d].status};
      if (!group.query.return_matches) continue;
      for (size_t i = 0; i < results[d].tokens.size(); ++i) {
        const ReferenceToken& token = results[d].tokens[i];
        group.matches[d * group.query.tokens + i] = {token.document_token,
                                                     static_cast<float>(token.similarity)};
      }
    }
  }
  return ScoreTimings{.upload = absl::ZeroDuration(), .compute = absl::Now() - start};
}

absl::StatusOr<PackedBuffer> ReferenceScorer::AllocatePackedBuffer(size_t size_bytes) {
  return PackedBuffer(new std::byte[size_bytes](), size_bytes,
                      [](std::byte* data) { delete[] data; });
}

}  // namespace maxsimd
