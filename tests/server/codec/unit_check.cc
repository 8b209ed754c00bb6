#include "tests/server/codec/unit_check.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"

namespace maxsimd {
namespace {

std::string OrderProblem(const DocumentChunk& chunk) {
  std::vector<uint32_t> order;
  std::vector<uint32_t> empty;
  for (uint32_t i = 0; i < chunk.documents.size(); ++i) {
    (chunk.documents[i].length > 0 ? order : empty).push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return chunk.documents[a].first_row < chunk.documents[b].first_row;
  });
  if (empty != chunk.empty) return "empty: not the documents of length 0, in order";
  return order == chunk.order ? "" : "order: not the others, by first row";
}

// Sums over documents order[first, last).
struct Extent {
  uint64_t first_row = ~uint64_t{0};
  uint64_t end_row = 0;
  uint64_t multiply_adds = 0;
  size_t result_bytes = 0;
};

Extent Measure(const DocumentChunk& chunk, const Query& query, uint32_t first, uint32_t last) {
  Extent extent;
  for (uint32_t i = first; i < last; ++i) {
    const DocumentRows& rows = chunk.documents[chunk.order[i]];
    extent.first_row = std::min(extent.first_row, rows.first_row);
    extent.end_row = std::max(extent.end_row, rows.first_row + rows.length);
    extent.multiply_adds += uint64_t{rows.length} * query.tokens * query.dim;
    extent.result_bytes += ResultBytes(query, chunk.ids[chunk.order[i]]);
  }
  return extent;
}

// Whether document order[next] may be in one unit with order[first, next).
bool MayJoin(const DocumentChunk& chunk, const Query& query, const UnitLimits& limits,
             uint32_t first, uint32_t next) {
  const Extent without = Measure(chunk, query, first, next);
  const Extent with = Measure(chunk, query, first, next + 1);
  if (with.multiply_adds > limits.max_multiply_adds) return false;
  if (with.result_bytes > limits.max_result_bytes) return false;
  const uint64_t next_row = chunk.documents[chunk.order[next]].first_row;
  const bool overlaps = next_row < without.end_row;
  const bool touches = next_row == without.end_row;
  const bool small = (with.end_row - with.first_row) * chunk.row_bytes <= limits.gather_bytes;
  return overlaps || (touches && small);
}

}  // namespace

std::string UnitsProblem(const DocumentChunk& chunk, const Query& query, const UnitLimits& limits) {
  if (std::string problem = OrderProblem(chunk); !problem.empty()) return problem;
  uint32_t next = 0;
  for (size_t u = 0; u < chunk.units.size(); ++u) {
    const Unit& unit = chunk.units[u];
    if (unit.first != next || unit.count == 0) return absl::StrCat("unit ", u, ": not a partition");
    next += unit.count;
    if (next > chunk.order.size()) return absl::StrCat("unit ", u, ": beyond the documents");
    const Extent extent = Measure(chunk, query, unit.first, next);
    if (unit.first_row != extent.first_row || unit.first_row + unit.row_count != extent.end_row) {
      return absl::StrCat("unit ", u, ": rows are not its documents'");
    }
    if (extent.end_row > chunk.row_count) return absl::StrCat("unit ", u, ": outside the tensor");
    if (unit.multiply_adds != extent.multiply_adds || unit.result_bytes != extent.result_bytes) {
      return absl::StrCat("unit ", u, ": sums are wrong");
    }
    for (uint32_t i = unit.first + 1; i < next; ++i) {
      if (!MayJoin(chunk, query, limits, unit.first, i)) {
        return absl::StrCat("unit ", u, ": document ", chunk.order[i], " must not be in it");
      }
    }
    if (next < chunk.order.size() && MayJoin(chunk, query, limits, unit.first, next)) {
      return absl::StrCat("unit ", u, ": ends without a reason");
    }
  }
  return next == chunk.order.size() ? "" : "units: don't hold all documents";
}

}  // namespace maxsimd
