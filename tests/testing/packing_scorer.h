// Scores groups whose rows lie anywhere on a backend that wants them in a packed buffer: packs them
// first, as a server would, with the backend's pitch.
//
// Padding is filled with bytes that are NaN in every element type.  A group's rows keep their
// misalignment to 16 bytes.
//
// Threads: as the backend.
#ifndef MAXSIMD_TESTS_TESTING_PACKING_SCORER_H_
#define MAXSIMD_TESTS_TESTING_PACKING_SCORER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/scorer.h"

namespace maxsimd {

class PackingScorer : public Scorer {
 public:
  explicit PackingScorer(std::shared_ptr<Scorer> backend) : backend_(std::move(backend)) {}

  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override;
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override {
    return backend_->AllocatePackedBuffer(size_bytes);
  }
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override {
    return dim * ElementBytes(type);
  }
  int concurrency() const override { return backend_->concurrency(); }
  std::string backend() const override { return backend_->backend(); }
  std::vector<std::string> devices() const override { return backend_->devices(); }
  double multiply_adds_per_second() const override { return backend_->multiply_adds_per_second(); }

 private:
  std::shared_ptr<Scorer> backend_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_PACKING_SCORER_H_
