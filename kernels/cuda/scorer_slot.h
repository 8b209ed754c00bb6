// What one batch in flight uses: a stream, its events, and memory on both sides.
//
// Errors: as cuda_status.h.  Threads: one batch at a time.
#ifndef MAXSIMD_KERNELS_CUDA_SCORER_SLOT_H_
#define MAXSIMD_KERNELS_CUDA_SCORER_SLOT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "kernels/cuda/batch_plan.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/stream.h"
#include "kernels/scorer.h"

namespace maxsimd::cuda {

class ScorerSlot {
 public:
  absl::Status Create();
  // Room for batches of this many packed bytes.
  absl::Status ReservePacked(size_t bytes);

  // Everything up to the copy of the scores into page-locked memory; doesn't wait for it.
  absl::Status Enqueue(const ScoreBatch& batch, const DeviceTraits& device);
  // Waits for it; `spin`: this batch is the only one, and a short wait need not cost a thread's
  // sleep and waking.
  absl::Status Wait(bool spin);
  // Waits for whatever is enqueued, in whatever state.
  absl::Status Synchronize();
  // After Wait: the batch's outputs.
  void Deliver(const ScoreBatch& batch) const;
  ScoreTimings Timings() const;

 private:
  absl::Status UploadRows(const ScoreBatch& batch);
  absl::Status ReserveFor(const BatchSizes& sizes);
  absl::Status ReserveZeroed(size_t bytes, DeviceBuffer* buffer);
  BatchMemory Memory(const BatchSizes& sizes) const;

  Stream stream_;
  Event started_;
  Event uploaded_;
  Event done_;
  DeviceBuffer packed_;
  DeviceBuffer realigned_;  // Rows that don't start at a multiple of 16 bytes.
  PinnedBuffer upload_host_;
  DeviceBuffer upload_;
  PinnedBuffer outputs_host_;
  DeviceBuffer outputs_;  // Scores, then matches.
  DeviceBuffer partials_;
  DeviceBuffer counters_;
  BatchPlan plan_;
  std::vector<RowPlace> places_;
  std::vector<Launch> launches_;
};

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SCORER_SLOT_H_
