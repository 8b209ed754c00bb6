// The work list of one launch: its documents cut into items, longest first.  Pure.
//
// Blocks take items in the list's order as they become free, so long items come first and what is
// left last is small.  A document that would keep a block busy for longer than its share of all
// work is cut into equal parts.
#ifndef MAXSIMD_KERNELS_CUDA_WORK_PLAN_H_
#define MAXSIMD_KERNELS_CUDA_WORK_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile_config.h"
#include "kernels/scorer.h"

namespace maxsimd::cuda {

struct PlanOptions {
  // The most of a block's share that an item may be.
  double share = 0.5;
  // Steps (of 128 elements of dim of a tile) that are worth a part of their own: a split costs the
  // writing, counting and reading of maxima, one or two microseconds.
  uint32_t min_part_steps = 8;
  // TileConfig::overlaps_previous.
  bool overlap = true;
};

// The documents of a group, and where its outputs begin in the launch's.
struct PlannedGroup {
  absl::Span<const DocumentRows> documents;
  uint32_t query_tokens = 0;
  uint32_t first_document = 0;
};

struct WorkPlan {
  std::vector<WorkItem> items;
  std::vector<SplitDocument> splits;
  uint32_t slots = 0;   // Of partial maxima.
  uint32_t blocks = 0;  // To launch.
};

// `block_slots`: blocks that the device runs at a time.  Documents of length 0 get no item.
void PlanWork(absl::Span<const PlannedGroup> groups, const TileConfig& config, uint32_t block_slots,
              const PlanOptions& options, WorkPlan* plan);

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_WORK_PLAN_H_
