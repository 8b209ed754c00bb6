// A scorer behind a gate: it scores as a real one does, but only when the gate lets it, or fails.
//
// Threads: Gate is thread-safe.
#ifndef MAXSIMD_TESTS_TESTING_GATED_SCORER_H_
#define MAXSIMD_TESTS_TESTING_GATED_SCORER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "kernels/mutex.h"
#include "kernels/scorer.h"

namespace maxsimd {

// At first every batch passes, so that the server's warm-up does.
class Gate {
 public:
  // From now on batches wait, until Release.
  void Hold() ABSL_LOCKS_EXCLUDED(mutex_);
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets one batch pass, now or when it comes.
  void ReleaseOne() ABSL_LOCKS_EXCLUDED(mutex_);

  // Every batch that has not passed yet fails with `status`; Ok: none does.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether `batches` wait at a time, soon.
  bool AwaitHeld(int batches) ABSL_LOCKS_EXCLUDED(mutex_);

  // Batches that came, the warm-up's included.
  int batches() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class GatedScorer;
  absl::Status Pass() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  int passes_ ABSL_GUARDED_BY(mutex_) = 0;  // ReleaseOne calls that no batch has used.
  int batches_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

class GatedScorer final : public Scorer {
 public:
  explicit GatedScorer(std::shared_ptr<Gate> gate);

  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override;
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override {
    return scorer_->AllocatePackedBuffer(size_bytes);
  }
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override {
    return scorer_->RowPitchBytes(type, dim);
  }
  int concurrency() const override { return scorer_->concurrency(); }
  std::string backend() const override { return "gate"; }
  std::vector<std::string> devices() const override { return {"gate"}; }
  double multiply_adds_per_second() const override { return scorer_->multiply_adds_per_second(); }

 private:
  const std::shared_ptr<Gate> gate_;
  const std::unique_ptr<Scorer> scorer_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_GATED_SCORER_H_
