// MaxSim on one NVIDIA GPU: a pipeline of several batches at a time.
//
// Precision, special values, errors: as Scorer.  Each call of Score has a slot: a stream, a device
// copy of the packed buffer, page-locked staging.  So uploads, kernels and downloads of successive
// batches overlap.  A batch is one copy of the packed rows, one of everything else, a launch per
// kind of group, and one copy of the scores back.
//
// Memory: taken at start, or when AllocatePackedBuffer asks for more; only a batch whose queries,
// work list or matches outgrow it takes more later.
//
// Rows start at multiples of 16 bytes from the packed buffer's start, else they are uploaded a
// second time, to where they do.
//
// Errors of Create: FailedPrecondition  no device of that number, or its driver or code is too old
//                   ResourceExhausted   device memory
// After a sticky error (one that leaves the context unusable) every call is Unavailable.
#ifndef MAXSIMD_KERNELS_CUDA_CUDA_SCORER_H_
#define MAXSIMD_KERNELS_CUDA_CUDA_SCORER_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "kernels/cuda/scorer_slot.h"
#include "kernels/cuda/tile_config.h"
#include "kernels/mutex.h"
#include "kernels/scorer.h"

namespace maxsimd {

class CudaScorer : public Scorer {
 public:
  // Computing, uploading, and one between the two or delivering.
  static constexpr int kSlots = 3;

  static absl::StatusOr<std::unique_ptr<CudaScorer>> Create(int device);
  ~CudaScorer() override;

  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override;
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override;
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override;
  int concurrency() const override { return kSlots; }
  std::string backend() const override { return "cuda"; }
  std::vector<std::string> devices() const override { return {name_}; }
  double multiply_adds_per_second() const override { return multiply_adds_per_second_; }

  // The next call of Score fails as if the device had reported this cudaError_t, which counts as
  // sticky.
  void FailNextScoreForTest(int cuda_error);

 private:
  CudaScorer(int device, std::string name, double multiply_adds_per_second,
             const cuda::DeviceTraits& traits);
  absl::Status CreateSlots();
  absl::StatusOr<ScoreTimings> ScoreIn(cuda::ScorerSlot& slot, const ScoreBatch& batch);
  // A failed call's status: waits until the device no longer uses the batch, and finds out whether
  // it still works.
  absl::Status Fail(cuda::ScorerSlot& slot, absl::Status status);
  // Whether one batch is in flight.
  bool IsAlone() ABSL_LOCKS_EXCLUDED(mutex_);
  cuda::ScorerSlot* TakeSlot();
  void ReturnSlot(cuda::ScorerSlot* slot);
  // The injected error, if there is one; only once.
  absl::Status TakeInjectedError();
  absl::Status Lose(const absl::Status& status);

  const int device_;
  const std::string name_;
  const double multiply_adds_per_second_;
  const cuda::DeviceTraits traits_;
  std::array<std::unique_ptr<cuda::ScorerSlot>, kSlots> slots_;

  Mutex mutex_;
  CondVar slot_returned_;
  std::vector<cuda::ScorerSlot*> free_slots_ ABSL_GUARDED_BY(mutex_);
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  int injected_error_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CUDA_CUDA_SCORER_H_
