#include "server/codec/request.h"

#include <cstring>

#include "absl/types/span.h"

namespace maxsimd {

QueryView Query::view() const {
  return {.element_type = element_type,
          .tokens = tokens,
          .dim = dim,
          .data = data.data(),
          .weights = weights,
          .aggregation = aggregation,
          .normalize = normalize,
          .return_matches = return_matches};
}

bool operator==(const Query& a, const Query& b) {
  // Weights by their bits: 0 and -0 are equal numbers, but need not give equal bits.
  const auto same_bytes = [](const auto& x, const auto& y) {
    return x.size() == y.size() &&
           (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])) == 0);
  };
  return a.hash == b.hash && a.element_type == b.element_type && a.tokens == b.tokens &&
         a.dim == b.dim && a.aggregation == b.aggregation && a.normalize == b.normalize &&
         a.return_matches == b.return_matches && same_bytes(a.weights, b.weights) &&
         same_bytes(a.data, b.data);
}

void DocumentIds::Add(absl::string_view id) {
  bytes_.append(id.data(), id.size());
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
}

absl::string_view DocumentIds::operator[](size_t document) const {
  if (ends_.empty()) return {};
  const uint32_t begin = document == 0 ? 0 : ends_[document - 1];
  return absl::string_view(bytes_).substr(begin, ends_[document] - begin);
}

size_t DocumentChunk::memory_bytes() const {
  return documents.capacity() * sizeof(documents[0]) + order.capacity() * sizeof(order[0]) +
         units.capacity() * sizeof(units[0]) + empty.capacity() * sizeof(empty[0]) +
         ids.memory_bytes();
}

size_t ResultBytes(const Query& query, absl::string_view id) {
  return EmptyResultBytes(id) + (query.return_matches ? query.tokens * sizeof(TokenMatch) : 0);
}

size_t EmptyResultBytes(absl::string_view id) {
  return sizeof(uint32_t) + sizeof(DocumentScore) + id.size();  // The first is the index.
}

}  // namespace maxsimd
