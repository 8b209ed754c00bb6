// A scorer that scores nothing: every document gets 1, as the server's warm-up expects.  It shows
// what a service costs beside the scoring, or stands for a device that takes a fixed time for every
// batch, whatever is in it.
//
// Threads: as Scorer says.
#ifndef MAXSIMD_TESTS_BENCH_STUB_SCORER_H_
#define MAXSIMD_TESTS_BENCH_STUB_SCORER_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "kernels/scorer.h"

namespace maxsimd {

class StubScorer final : public Scorer {
 public:
  // Each batch takes `batch_time`, during which the processor is free.
  explicit StubScorer(absl::Duration batch_time) : batch_time_(batch_time) {}

  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override;
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override;
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override {
    return dim * ElementBytes(type);
  }
  int concurrency() const override { return 1; }
  std::string backend() const override { return "stub"; }
  std::vector<std::string> devices() const override { return {"stub"}; }
  // So many that no batch is full by them.
  double multiply_adds_per_second() const override { return 1e15; }

 private:
  const absl::Duration batch_time_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_BENCH_STUB_SCORER_H_
