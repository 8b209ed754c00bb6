#include "tests/server/codec/naive_validation.h"

#include <cmath>
#include <cstring>

#include "absl/numeric/int128.h"

namespace maxsimd {
namespace {

// The elements' values, of any type, as far as being finite goes.
bool HoldsNonFinite(const std::string& data, v1::ElementType type) {
  const size_t size = ElementBytesOf(type);
  for (size_t at = 0; at + size <= data.size(); at += size) {
    if (type == v1::ELEMENT_TYPE_FLOAT16) {
      uint16_t half;
      std::memcpy(&half, &data[at], size);
      if (((half >> 10) & 31) == 31) return true;
      continue;
    }
    float value = 0;  // bfloat16 is the upper half of a float32.
    std::memcpy(reinterpret_cast<char*>(&value) + (sizeof(value) - size), &data[at], size);
    if (!std::isfinite(value)) return true;
  }
  return false;
}

void Check(bool right, const char* name, std::set<std::string>* wrong) {
  if (!right) wrong->insert(name);
}

void JudgeTyped(const v1::Documents& documents, const v1::TokenMatrix& query, Verdict* verdict) {
  const v1::TokenMatrix& tokens = documents.tokens();
  if (tokens.element_type() == 0 && tokens.dim() == 0 && tokens.data().empty()) {
    verdict->invalid.insert("tokens");
    return;
  }
  Check(tokens.element_type() == query.element_type(), "element_type", &verdict->invalid);
  Check(tokens.dim() == query.dim(), "dim", &verdict->invalid);
  const size_t row_bytes = ElementBytesOf(query.element_type()) * query.dim();
  if (tokens.data().size() % row_bytes != 0) {
    verdict->invalid.insert("data");
    return;
  }
  const absl::uint128 rows = tokens.data().size() / row_bytes;
  absl::uint128 sum = 0;
  for (const uint32_t length : documents.lengths()) sum += length;
  if (documents.offsets().empty()) Check(sum == rows, "lengths", &verdict->invalid);
  if (documents.offsets_size() != documents.lengths_size()) return;
  for (int i = 0; i < documents.lengths_size(); ++i) {
    const absl::uint128 end = absl::uint128(documents.offsets(i)) + documents.lengths(i);
    Check(end <= rows, "offsets", &verdict->invalid);
  }
}

}  // namespace

size_t ElementBytesOf(v1::ElementType type) {
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

Verdict JudgeQuery(const v1::Query& query, const v1::RerankOptions& options, const Limits& limits) {
  Verdict verdict;
  const v1::TokenMatrix& tokens = query.tokens();
  const size_t row_bytes = ElementBytesOf(tokens.element_type()) * tokens.dim();
  const bool absent = tokens.element_type() == 0 && tokens.dim() == 0 && tokens.data().empty();
  Check(!absent, "tokens", &verdict.invalid);
  Check(ElementBytesOf(tokens.element_type()) != 0, "element_type", &verdict.invalid);
  Check(tokens.dim() != 0, "dim", &verdict.invalid);
  Check(tokens.dim() <= limits.max_dim, "max_dim", &verdict.exceeded);
  Check(options.aggregation() >= 0 && options.aggregation() <= 2, "aggregation", &verdict.invalid);
  if (row_bytes == 0) return verdict;

  const size_t count = tokens.data().size() / row_bytes;
  Check(count > 0 && tokens.data().size() % row_bytes == 0, "data", &verdict.invalid);
  Check(!HoldsNonFinite(tokens.data(), tokens.element_type()), "data", &verdict.invalid);
  Check(count <= limits.max_query_tokens, "max_query_tokens", &verdict.exceeded);

  const size_t weights = query.token_weights_size();
  Check(weights == 0 || weights == count, "token_weights", &verdict.invalid);
  long double sum = weights == 0 ? count : 0;
  for (const float weight : query.token_weights()) {
    Check(std::isfinite(weight), "token_weights", &verdict.invalid);
    sum += weight;
  }
  const bool mean = options.aggregation() == v1::AGGREGATION_MEAN;
  Check(!mean || (std::isfinite(sum) && sum > 0), "token_weights", &verdict.invalid);
  return verdict;
}

Verdict JudgeDocuments(const v1::Documents& documents, const v1::TokenMatrix& query,
                       const Limits& limits) {
  Verdict verdict;
  const int count = documents.lengths_size();
  const v1::TokenMatrix& tokens = documents.tokens();
  if (count == 0) {
    Check(documents.ids().empty(), "ids", &verdict.invalid);
    Check(documents.offsets().empty(), "offsets", &verdict.invalid);
    Check(tokens.data().empty(), "lengths", &verdict.invalid);
    Check(tokens.element_type() == 0 || tokens.element_type() == query.element_type(),
          "element_type", &verdict.invalid);
    Check(tokens.dim() == 0 || tokens.dim() == query.dim(), "dim", &verdict.invalid);
    return verdict;
  }
  Check(documents.ids().empty() || documents.ids_size() == count, "ids", &verdict.invalid);
  Check(documents.offsets().empty() || documents.offsets_size() == count, "offsets",
        &verdict.invalid);
  JudgeTyped(documents, query, &verdict);

  Check(static_cast<uint64_t>(count) <= limits.max_documents_per_message,
        "max_documents_per_message", &verdict.exceeded);
  for (const std::string& id : documents.ids()) {
    Check(id.size() <= limits.max_id_bytes, "max_id_bytes", &verdict.exceeded);
  }
  absl::uint128 work = 0;
  const size_t query_elements = query.data().size() / ElementBytesOf(query.element_type());
  for (const uint32_t length : documents.lengths()) {
    Check(length <= limits.max_document_tokens, "max_document_tokens", &verdict.exceeded);
    work += absl::uint128(length) * query_elements;
  }
  Check(work <= limits.max_multiply_adds_per_message, "max_multiply_adds_per_message",
        &verdict.exceeded);
  return verdict;
}

}  // namespace maxsimd
