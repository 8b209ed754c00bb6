#include "server/codec/units.h"

#include <algorithm>

namespace maxsimd {
namespace {

// By first row, then index: both in one word, so that sorting need not look the rows up.  A row's
// number fits its half since messages are smaller than 2 GiB and rows are not empty.
void OrderDocuments(DocumentChunk* chunk) {
  std::vector<uint64_t> keys;
  keys.reserve(chunk->documents.size());
  for (uint32_t i = 0; i < chunk->documents.size(); ++i) {
    const DocumentRows& document = chunk->documents[i];
    if (document.length == 0) {
      chunk->empty.push_back(i);
    } else {
      keys.push_back(document.first_row << 32 | i);
    }
  }
  // Back to back, and as most windows over texts are sent, they lie in order already.
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
  chunk->order.reserve(keys.size());
  for (const uint64_t key : keys) chunk->order.push_back(static_cast<uint32_t>(key));
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
