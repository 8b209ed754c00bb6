// A batch turned into what the device needs beside the rows: launches, and the bytes they refer to.
//
// Groups whose configs agree share a launch (Hopper kernels: also dim, pitch and where rows begin
// modulo the pitch, so that one tensor map serves all).  Use: Make, which needs nothing of the
// device; then, with memory of sizes() in hand, Write, which fills the block to upload and makes
// the launches.  All pointers in them are into the memory that Write was given.
//
// Errors: Internal, if the driver refuses a tensor map.
// Threads: one at a time.
#ifndef MAXSIMD_KERNELS_CUDA_BATCH_PLAN_H_
#define MAXSIMD_KERNELS_CUDA_BATCH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile_config.h"
#include "kernels/cuda/work_plan.h"
#include "kernels/scorer.h"

namespace maxsimd::cuda {

// Where a group's rows are on the device.
struct RowPlace {
  const std::byte* region = nullptr;  // The allocation, or a part of it; 16-byte aligned.
  size_t region_bytes = 0;
  const std::byte* rows = nullptr;  // Row 0, within the region; 16-byte aligned.
};

struct BatchSizes {
  size_t upload_bytes = 0;
  size_t score_count = 0;
  size_t match_count = 0;
  size_t partial_count = 0;  // Maxima of split documents, and as many rows.
  size_t counter_count = 0;  // Counters and tickets.
};

struct BatchMemory {
  std::byte* upload_host = nullptr;
  const std::byte* upload = nullptr;  // Its copy on the device.
  ScoreOut* scores = nullptr;
  MatchOut* matches = nullptr;
  float* partial_maxima = nullptr;
  uint32_t* partial_rows = nullptr;
  uint32_t* counters = nullptr;  // [counter_count], all 0; so they are again afterwards.
};

struct Launch {
  TileConfig config;
  LaunchParams params;
  TensorMaps maps;
  uint32_t blocks = 0;
};

class BatchPlan {
 public:
  // The groups and places must outlive Write.
  void Make(absl::Span<const QueryGroup> groups, absl::Span<const RowPlace> places,
            const DeviceTraits& device, const PlanOptions& options = {});
  const BatchSizes& sizes() const { return sizes_; }
  absl::Status Write(const BatchMemory& memory, std::vector<Launch>* launches) const;

  // In LaunchParams::scores and ::matches, per group.
  size_t first_score(size_t group) const { return outputs_[group].first_score; }
  size_t first_match(size_t group) const { return outputs_[group].first_match; }

 private:
  struct Outputs {
    size_t first_score;
    size_t first_match;
  };
  // A launch to be, with the offsets of its arrays in the upload.
  struct Bucket {
    TileConfig config;
    std::vector<uint32_t> groups;
    WorkPlan work;
    size_t params_offset = 0;
    size_t items_offset = 0;
    size_t splits_offset = 0;
    size_t first_partial = 0;
    size_t first_counter = 0;
  };
  struct QueryOffsets {
    size_t image;
    size_t weights;
    size_t factors;
  };

  bool Joins(const Bucket& bucket, const TileConfig& config, uint32_t group) const;
  size_t Allot(size_t bytes);
  void AddGroup(uint32_t group, const DeviceTraits& device);
  void PlanBucket(const DeviceTraits& device, const PlanOptions& options, Bucket* bucket);
  void WriteGroup(const Bucket& bucket, uint32_t group, const BatchMemory& memory,
                  GroupParams* params) const;
  absl::Status WriteBucket(const Bucket& bucket, const BatchMemory& memory, Launch* launch) const;

  absl::Span<const QueryGroup> groups_;
  absl::Span<const RowPlace> places_;
  std::vector<Outputs> outputs_;
  std::vector<QueryOffsets> queries_;
  std::vector<Bucket> buckets_;
  BatchSizes sizes_;
};

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_BATCH_PLAN_H_
