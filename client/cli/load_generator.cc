#include "client/cli/load_generator.h"

#include <algorithm>
#include <deque>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"

#include "kernels/mutex.h"

namespace maxsimd {
namespace {

// Long against a refused connection, short against a run.
constexpr absl::Duration kPauseAfterFailure = absl::Milliseconds(100);

class LoadGenerator {
 public:
  LoadGenerator(const LoadPlan& plan, const LoadStart& start, const LoadProgress& progress)
      : plan_(plan),
        start_(start),
        progress_(progress),
        begin_(absl::Now()),
        end_(plan.calls > 0 ? absl::InfiniteFuture() : begin_ + plan.warm_up + plan.duration),
        next_progress_(begin_ + absl::Seconds(1)),
        record_(begin_ + plan.warm_up, end_) {}

  LoadRecord Run() {
    if (plan_.rate > 0) {
      RunOpenLoop();
    } else {
      RunClosedLoop();
    }
    MutexLock lock(&mutex_);
    while (under_way_ > 0) WaitUntil(absl::InfiniteFuture());
    return record_;
  }

 private:
  void RunOpenLoop() {
    std::mt19937_64 random(plan_.seed);
    std::uniform_real_distribution<double> chance(0, 1);
    absl::Time due = begin_;
    for (;;) {
      due += PoissonGap(plan_.rate, chance(random));
      if (due >= end_) return;
      {
        MutexLock lock(&mutex_);
        while (absl::Now() < due) WaitUntil(due);
      }
      StartCall(due, /*repeat=*/false);
    }
  }

  // Calls start each other; here only those that follow a failure are started.
  void RunClosedLoop() {
    for (int64_t i = 0; i < plan_.concurrency; ++i) {
      if (MayStart(absl::Now())) StartCall(absl::Now(), /*repeat=*/true);
    }
    mutex_.Lock();
    while (under_way_ > 0 || !paused_.empty()) {
      const absl::Time next = paused_.empty() ? absl::InfiniteFuture() : paused_.front();
      if (const absl::Time now = absl::Now(); now >= next) {
        paused_.pop_front();
        mutex_.Unlock();
        if (MayStart(now)) StartCall(now, /*repeat=*/true);
        mutex_.Lock();
        continue;
      }
      WaitUntil(next);
    }
    mutex_.Unlock();
  }

  // Whether there is one more call to make; it then counts as made.
  bool MayStart(absl::Time now) {
    MutexLock lock(&mutex_);
    if (now >= end_ || (plan_.calls > 0 && made_ >= plan_.calls)) return false;
    ++made_;
    return true;
  }

  // Sleeps until then, a call's end or the next progress, whichever comes first.
  void WaitUntil(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    changed_.WaitUntil(&mutex_, std::min(time, next_progress_));
    const absl::Time now = absl::Now();
    if (now < next_progress_) return;
    next_progress_ = now + absl::Seconds(1);
    progress_(now - begin_, ended_);
  }

  void StartCall(absl::Time due, bool repeat) {
    {
      MutexLock lock(&mutex_);
      ++under_way_;
    }
    start_([this, due, repeat](const std::string& error) { EndCall(due, repeat, error); });
  }

  void EndCall(absl::Time due, bool repeat, const std::string& error) {
    const absl::Time now = absl::Now();
    {
      MutexLock lock(&mutex_);
      record_.Add(due, now, error);
      ++ended_;
      if (repeat && !error.empty()) paused_.push_back(now + kPauseAfterFailure);
    }
    if (repeat && error.empty() && MayStart(now)) StartCall(now, repeat);
    // Last of all, so that the generator lives as long as this runs.
    MutexLock lock(&mutex_);
    if (--under_way_ == 0 || !error.empty()) changed_.NotifyAll();
  }

  const LoadPlan plan_;
  const LoadStart& start_;
  const LoadProgress& progress_;
  const absl::Time begin_;
  const absl::Time end_;
  Mutex mutex_;
  CondVar changed_;
  absl::Time next_progress_ ABSL_GUARDED_BY(mutex_);
  int64_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t made_ ABSL_GUARDED_BY(mutex_) = 0;  // Of a closed loop.
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Time> paused_ ABSL_GUARDED_BY(mutex_);  // When calls follow failed ones.
  LoadRecord record_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

LoadRecord RunLoad(const LoadPlan& plan, const LoadStart& start, const LoadProgress& progress) {
  return LoadGenerator(plan, start, progress).Run();
}

}  // namespace maxsimd
