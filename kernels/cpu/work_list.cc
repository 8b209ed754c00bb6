#include "kernels/cpu/work_list.h"

#include <algorithm>

namespace maxsimd {
namespace {

// Parts begin at multiples of this many tokens: whole blocks for every kernel (24 rows, 32 for
// AMX).
constexpr uint32_t kPartTokens = 96;

void CutDocument(size_t group, size_t document, uint32_t length, double tokens_per_item,
                 std::vector<WorkItem>* items) {
  const uint32_t wanted = static_cast<uint32_t>(std::min<double>(tokens_per_item, length));
  const uint32_t step = std::max<uint32_t>(wanted / kPartTokens, 1) * kPartTokens;
  for (uint32_t first = 0; first < length; first += std::min(step, length - first)) {
    items->push_back({.group = group,
                      .first_document = document,
                      .documents = 1,
                      .is_part = true,
                      .first_token = first,
                      .tokens = std::min(step, length - first)});
  }
}

void CutGroup(const QueryGroup& group, size_t group_index, double multiply_adds_per_item,
              std::vector<WorkItem>* items) {
  const double tokens_per_item =
      std::max(1.0, multiply_adds_per_item / (double{1} * group.query.tokens * group.query.dim));
  WorkItem run{.group = group_index};
  double run_tokens = 0;
  const auto finish_run = [&](size_t next_document) {
    if (run.documents > 0) items->push_back(run);
    run.first_document = next_document;
    run.documents = 0;
    run_tokens = 0;
  };
  for (size_t d = 0; d < group.documents.size(); ++d) {
    const uint32_t length = group.documents[d].length;
    if (length > kPartTokens && length > 1.5 * tokens_per_item) {
      finish_run(d + 1);
      CutDocument(group_index, d, length, tokens_per_item, items);
      continue;
    }
    ++run.documents;
    run_tokens += length;
    if (run_tokens >= tokens_per_item) finish_run(d + 1);
  }
  finish_run(group.documents.size());
}

}  // namespace

double MultiplyAdds(const QueryGroup& group) {
  double tokens = 0;
  for (const DocumentRows& document : group.documents) tokens += document.length;
  return tokens * group.query.tokens * group.query.dim;
}

void CutWork(absl::Span<const QueryGroup> groups, double multiply_adds_per_item,
             std::vector<WorkItem>* items) {
  items->clear();
  for (size_t g = 0; g < groups.size(); ++g) {
    CutGroup(groups[g], g, multiply_adds_per_item, items);
  }
}

}  // namespace maxsimd
