#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/client/fake_server.h"

namespace maxsimd {
namespace {

double DecodeFloat16(uint16_t bits) {
  const double sign = (bits & 0x8000) ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double Element(const v1::TokenMatrix& matrix, size_t index) {
  const char* data = matrix.data().data();
  if (matrix.element_type() == v1::ELEMENT_TYPE_FLOAT32) {
    float value;
    std::memcpy(&value, data + 4 * index, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data + 2 * index, 2);
  if (matrix.element_type() == v1::ELEMENT_TYPE_FLOAT16) return DecodeFloat16(bits);
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

double Norm(const v1::TokenMatrix& matrix, uint64_t row) {
  double sum = 0;
  for (uint32_t k = 0; k < matrix.dim(); ++k)
    sum += std::pow(Element(matrix, row * matrix.dim() + k), 2);
  return std::sqrt(sum);
}

double Similarity(const v1::TokenMatrix& query, uint64_t i, const v1::TokenMatrix& documents,
                  uint64_t j, bool normalize) {
  double sum = 0;
  for (uint32_t k = 0; k < query.dim(); ++k) {
    sum += Element(query, i * query.dim() + k) * Element(documents, j * query.dim() + k);
  }
  if (!normalize) return sum;
  const double norms = Norm(query, i) * Norm(documents, j);
  return norms == 0 ? 0 : sum / norms;
}

}  // namespace

std::vector<v1::ScoredDocument> PlainScores(const v1::Query& query, const v1::Documents& documents,
                                            const v1::RerankOptions& options) {
  const v1::TokenMatrix& tokens = query.tokens();
  const size_t element_bytes = tokens.element_type() == v1::ELEMENT_TYPE_FLOAT32 ? 4 : 2;
  const size_t query_tokens = tokens.data().size() / (tokens.dim() * element_bytes);
  double weight_sum = 0;
  const auto weight = [&](size_t i) {
    return query.token_weights().empty() ? 1 : query.token_weights(i);
  };
  for (size_t i = 0; i < query_tokens; ++i) weight_sum += weight(i);

  std::vector<v1::ScoredDocument> results;
  uint64_t next_row = 0;
  for (int d = 0; d < documents.lengths_size(); ++d) {
    const uint64_t first_row = documents.offsets().empty() ? next_row : documents.offsets(d);
    const uint32_t length = documents.lengths(d);
    next_row = first_row + length;
    v1::ScoredDocument& result = results.emplace_back();
    result.set_index(d);
    if (!documents.ids().empty()) result.set_id(documents.ids(d));
    result.set_score(-INFINITY);
    result.set_status(length == 0 ? v1::DOCUMENT_STATUS_EMPTY : v1::DOCUMENT_STATUS_SCORED);
    if (length == 0) continue;
    double score = 0;
    for (size_t i = 0; i < query_tokens; ++i) {
      double best = -INFINITY;
      uint32_t best_row = 0;
      for (uint32_t j = 0; j < length; ++j) {
        const double similarity =
            Similarity(tokens, i, documents.tokens(), first_row + j, options.normalize());
        if (similarity > best) best = similarity, best_row = j;
      }
      score += weight(i) * best;
      if (!options.return_matches()) continue;
      v1::TokenMatch* match = result.add_matches();
      match->set_document_token(best_row);
      match->set_similarity(static_cast<float>(best));
    }
    if (options.aggregation() == v1::AGGREGATION_MEAN) score /= weight_sum;
    result.set_score(static_cast<float>(score));
  }
  return results;
}

}  // namespace maxsimd
