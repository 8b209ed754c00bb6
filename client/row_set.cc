#include "client/row_set.h"

#include <algorithm>

namespace maxsimd {

RowSet::Map::const_iterator RowSet::FirstNear(uint64_t begin) const {
  auto next = end_of_.upper_bound(begin);
  if (next != end_of_.begin() && std::prev(next)->second >= begin) return std::prev(next);
  return next;
}

uint64_t RowSet::CountMissing(RowRange range) const {
  uint64_t missing = range.end - range.begin;
  for (auto it = FirstNear(range.begin); it != end_of_.end() && it->first < range.end; ++it) {
    const uint64_t begin = std::max(it->first, range.begin);
    const uint64_t end = std::min(it->second, range.end);
    if (begin < end) missing -= end - begin;
  }
  return missing;
}

void RowSet::Add(RowRange range) {
  if (range.begin == range.end) return;
  auto it = FirstNear(range.begin);
  while (it != end_of_.end() && it->first <= range.end) {
    range.begin = std::min(range.begin, it->first);
    range.end = std::max(range.end, it->second);
    it = end_of_.erase(it);
  }
  end_of_.emplace(range.begin, range.end);
}

std::vector<RowRange> RowSet::ranges() const {
  std::vector<RowRange> ranges;
  ranges.reserve(end_of_.size());
  for (const auto& [begin, end] : end_of_) ranges.push_back({begin, end});
  return ranges;
}

}  // namespace maxsimd
