// A Scorer on strings: each call of Score waits until the test says how it ends.
//
// Scores as the oracle does.  Threads: thread-safe.
#ifndef MAXSIMD_TESTS_TESTING_PUPPET_SCORER_H_
#define MAXSIMD_TESTS_TESTING_PUPPET_SCORER_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "kernels/mutex.h"
#include "kernels/scorer.h"

namespace maxsimd {

class PuppetScorer : public Scorer {
 public:
  // What one call of Score was given.
  struct Call {
    size_t groups = 0;
    size_t documents = 0;
    size_t packed_bytes = 0;
  };

  // Rows are padded to a multiple of `pitch_multiple` bytes.  By default it claims to be so slow
  // that no batch is short enough for the submitting thread, which the test needs to go on.
  explicit PuppetScorer(int concurrency = 1, size_t pitch_multiple = 1,
                        double multiply_adds_per_second = 1000)
      : concurrency_(concurrency),
        pitch_multiple_(pitch_multiple),
        multiply_adds_per_second_(multiply_adds_per_second) {}

  // Ends one call, the one that waits or the next one: with `status`, or by scoring if it is Ok.
  void Release(absl::Status status = absl::OkStatus()) ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on no call waits.
  void ReleaseAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Until `count` calls have begun, over all.
  void WaitForCalls(size_t count) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Call> calls() const ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override;
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override;
  int concurrency() const override { return concurrency_; }
  std::string backend() const override { return "puppet"; }
  std::vector<std::string> devices() const override { return {"puppet"}; }
  double multiply_adds_per_second() const override { return multiply_adds_per_second_; }

 private:
  const int concurrency_;
  const size_t pitch_multiple_;
  const double multiply_adds_per_second_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> answers_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_PUPPET_SCORER_H_
