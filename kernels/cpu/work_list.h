// Cuts a batch into work items of about equal arithmetic.
//
// An item is a run of whole documents of one group, or a part of one long document.  Maxima over
// parts combine exactly, in row order, so that no cut changes a score.  Pure: no threads, no
// kernels.
#ifndef MAXSIMD_KERNELS_CPU_WORK_LIST_H_
#define MAXSIMD_KERNELS_CPU_WORK_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "kernels/scorer.h"

namespace maxsimd {

struct WorkItem {
  size_t group = 0;
  size_t first_document = 0;
  size_t documents = 0;  // 1 where it is a part.
  bool is_part = false;
  uint32_t first_token = 0;  // Of a part.
  uint32_t tokens = 0;       // Of a part.
};

// sum(lengths) * query_tokens * dim.
double MultiplyAdds(const QueryGroup& group);

// Items of the groups, in the order of documents and rows; a document's parts stand together.
// Clears `items` first.
void CutWork(absl::Span<const QueryGroup> groups, double multiply_adds_per_item,
             std::vector<WorkItem>* items);

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_WORK_LIST_H_
