#include "server/codec/units.h"

#include <algorithm>

namespace maxsimd {
namespace {

void OrderDocuments(DocumentChunk* chunk) {
  const std::vector<DocumentRows>& documents = chunk->documents;
  chunk->order.reserve(documents.size());
  for (uint32_t i = 0; i < documents.size(); ++i) {
    (documents[i].length == 0 ? chunk->empty : chunk->order).push_back(i);
  }
  const auto before = [&](uint32_t a, uint32_t b) {
    return documents[a].first_row < documents[b].first_row;
  };
  // Back to back, and most windows over texts, they lie in order already.
  if (!std::is_sorted(chunk->order.begin(), chunk->order.end(), before)) {
    std::stable_sort(chunk->order.begin(), chunk->order.end(), before);
  }
}

// What a document adds to a unit.
struct Share {
  uint64_t first_row;
  uint64_t end_row;
  uint64_t multiply_adds;
  size_t result_bytes;
};

bool Joins(const Share& next, const Unit& unit, const UnitLimits& limits, size_t row_bytes) {
  if (unit.multiply_adds + next.multiply_adds > limits.max_multiply_adds) return false;
  if (unit.result_bytes + next.result_bytes > limits.max_result_bytes) return false;
  const uint64_t end_row = unit.first_row + unit.row_count;
  if (next.first_row < end_row) return true;
  return next.first_row == end_row &&
         (next.end_row - unit.first_row) * row_bytes <= limits.gather_bytes;
}

void Add(const Share& next, Unit* unit) {
  unit->row_count = std::max(unit->row_count, next.end_row - unit->first_row);
  ++unit->count;
  unit->multiply_adds += next.multiply_adds;
  unit->result_bytes += next.result_bytes;
}

}  // namespace

void BuildUnits(const Query& query, const UnitLimits& limits, DocumentChunk* chunk) {
  OrderDocuments(chunk);
  const uint64_t multiply_adds_per_token = uint64_t{query.tokens} * query.dim;
  for (uint32_t i = 0; i < chunk->order.size(); ++i) {
    const uint32_t index = chunk->order[i];
    const DocumentRows& document = chunk->documents[index];
    const Share share = {.first_row = document.first_row,
                         .end_row = document.first_row + document.length,
                         .multiply_adds = document.length * multiply_adds_per_token,
                         .result_bytes = ResultBytes(query, chunk->ids[index])};
    if (chunk->units.empty() || !Joins(share, chunk->units.back(), limits, chunk->row_bytes)) {
      chunk->units.push_back({.first_row = share.first_row, .row_count = 0, .first = i});
    }
    Add(share, &chunk->units.back());
  }
}

}  // namespace maxsimd
