#include "tests/testing/gated_scorer.h"

#include <utility>

#include "absl/time/clock.h"

#include "kernels/create_scorer.h"
#include "tests/testing/patience.h"

namespace maxsimd {
namespace {

std::unique_ptr<Scorer> CreateCpuScorer() {
  ScorerOptions options;
  options.backend = "cpu";
  options.threads = 1;
  return std::move(CreateScorers(options).value().front());
}

}  // namespace

void Gate::Hold() {
  MutexLock lock(&mutex_);
  holds_ = true;
}

void Gate::Release() {
  MutexLock lock(&mutex_);
  holds_ = false;
  changed_.NotifyAll();
}

void Gate::ReleaseOne() {
  MutexLock lock(&mutex_);
  ++passes_;
  changed_.NotifyAll();
}

void Gate::Fail(const absl::Status& status) {
  MutexLock lock(&mutex_);
  failure_ = status;
}

bool Gate::AwaitHeld(int batches) {
  const absl::Time deadline = absl::Now() + kPatience;
  MutexLock lock(&mutex_);
  while (held_ != batches && absl::Now() < deadline) changed_.WaitUntil(&mutex_, deadline);
  return held_ == batches;
}

int Gate::batches() const {
  MutexLock lock(&mutex_);
  return batches_;
}

absl::Status Gate::Pass() {
  MutexLock lock(&mutex_);
  ++batches_;
  ++held_;
  changed_.NotifyAll();
  while (holds_ && passes_ == 0) changed_.Wait(&mutex_);
  if (holds_) --passes_;
  --held_;
  changed_.NotifyAll();
  return failure_;
}

GatedScorer::GatedScorer(std::shared_ptr<Gate> gate)
    : gate_(std::move(gate)), scorer_(CreateCpuScorer()) {}

absl::StatusOr<ScoreTimings> GatedScorer::Score(const ScoreBatch& batch) {
  if (const absl::Status status = gate_->Pass(); !status.ok()) return status;
  return scorer_->Score(batch);
}

}  // namespace maxsimd
