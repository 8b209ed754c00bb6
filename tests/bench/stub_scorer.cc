#include "tests/bench/stub_scorer.h"

#include <algorithm>

#include "absl/time/clock.h"
#include <sys/prctl.h>
#include <time.h>

#include "kernels/cpu/resident_memory.h"

namespace maxsimd {

absl::StatusOr<ScoreTimings> StubScorer::Score(const ScoreBatch& batch) {
  const absl::Time start = absl::Now();
  if (batch_time_ > absl::ZeroDuration()) {
    // The kernel may let a thread oversleep by its timer slack, 50 us by default.
    thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1);
    static_cast<void>(slack);
    const timespec time = absl::ToTimespec(batch_time_);
    nanosleep(&time, nullptr);
  }
  for (QueryGroup& group : batch.groups) {
    std::fill(group.scores.begin(), group.scores.end(), DocumentScore{1, DocumentStatus::kScored});
  }
  return ScoreTimings{absl::ZeroDuration(), absl::Now() - start};
}

absl::StatusOr<PackedBuffer> StubScorer::AllocatePackedBuffer(size_t size_bytes) {
  return AllocateResidentMemory(size_bytes);
}

}  // namespace maxsimd
