// A set of rows as disjoint ranges: what one message carries when its documents may overlap.
//
// Ranges that touch are joined, so that they go as one slice.  O(log ranges) for what lies apart.
#ifndef MAXSIMD_CLIENT_ROW_SET_H_
#define MAXSIMD_CLIENT_ROW_SET_H_

#include <cstdint>
#include <map>
#include <vector>

#include "client/chunk_plan.h"

namespace maxsimd {

class RowSet {
 public:
  // Rows of `range` that are not in the set.
  uint64_t CountMissing(RowRange range) const;
  void Add(RowRange range);
  std::vector<RowRange> ranges() const;
  void clear() { end_of_.clear(); }

 private:
  using Map = std::map<uint64_t, uint64_t>;
  // The first range that touches or overlaps one starting at `begin`, or the first after it.
  Map::const_iterator FirstNear(uint64_t begin) const;

  Map end_of_;  // By first row.
};

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_ROW_SET_H_
