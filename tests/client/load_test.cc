#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "client/cli/latency.h"
#include "client/cli/load_generator.h"

namespace maxsimd {
namespace {

TEST(PercentileTest, TakesTheNearestRank) {
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(Percentile(values, 50), 500);
  EXPECT_EQ(Percentile(values, 90), 900);
  EXPECT_EQ(Percentile(values, 99), 990);
  EXPECT_EQ(Percentile(values, 99.9), 999);
  EXPECT_EQ(Percentile(values, 100), 1000);
  EXPECT_EQ(Percentile(values, 0), 1);
  EXPECT_EQ(Percentile({7.0}, 99.9), 7);
  EXPECT_EQ(Percentile({1.0, 2.0}, 50), 1);
  EXPECT_EQ(Percentile({1.0, 2.0}, 51), 2);
  EXPECT_EQ(Percentile({}, 50), 0);
}

TEST(PercentileTest, SummarizesValuesInAnyOrder) {
  const LatencySummary summary = Summarize({4, 1, 3, 2});
  EXPECT_EQ(summary.mean, 2.5);
  EXPECT_EQ(summary.p50, 2);
  EXPECT_EQ(summary.max, 4);
  EXPECT_EQ(Summarize({}).max, 0);
}

TEST(PoissonGapTest, IsExponentialWithTheRateAsItsMean) {
  EXPECT_EQ(PoissonGap(10, 0), absl::ZeroDuration());
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> chance(0, 1);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double gap = absl::ToDoubleSeconds(PoissonGap(50, chance(random)));
    sum += gap;
    squares += gap * gap;
  }
  EXPECT_NEAR(sum / 100000, 0.02, 0.0005);               // 1 / rate.
  EXPECT_NEAR(squares / 100000, 2 * 0.02 * 0.02, 4e-5);  // 2 / rate^2.
}

TEST(LoadRecordTest, CountsCallsThatWereDueInTimeFromWhenTheyWereDue) {
  const absl::Time from = absl::UnixEpoch();
  const auto at = [&](int ms) { return from + absl::Milliseconds(ms); };
  LoadRecord record(from, at(100));
  record.Add(at(-1), at(50), "");  // Warm-up.
  record.Add(at(0), at(20), "");
  record.Add(at(99), at(130), "");
  record.Add(at(100), at(110), "");  // Too late.
  record.Add(at(5), at(6), "UNAVAILABLE");
  EXPECT_EQ(record.succeeded(), 2u);
  EXPECT_EQ(record.failed(), 1u);
  EXPECT_EQ(record.errors().at("UNAVAILABLE"), 1u);
  EXPECT_EQ(record.latency_ms().p50, 20);
  EXPECT_EQ(record.latency_ms().max, 31);
  EXPECT_EQ(record.elapsed(), absl::Milliseconds(130));
  EXPECT_EQ(LoadRecord(from, at(100)).elapsed(), absl::Milliseconds(100));
}

// Answers calls on a thread of its own, in order.
class Answerer {
 public:
  Answerer() : thread_([this] { Work(); }) {}
  ~Answerer() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Start(LoadDone done) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      waiting_.push_back(std::move(done));
      most_ = std::max(most_, waiting_.size());
    }
    changed_.notify_all();
  }

  size_t most() const { return most_; }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const LoadDone done = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      done("");
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<LoadDone> waiting_;
  size_t most_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

TEST(LoadGeneratorTest, KeepsAClosedLoopAtItsConcurrency) {
  Answerer answerer;
  const LoadPlan plan{.concurrency = 5,
                      .rate = 0,
                      .seed = 1,
                      .warm_up = absl::ZeroDuration(),
                      .duration = absl::Milliseconds(30)};
  const LoadRecord record = RunLoad(
      plan, [&](LoadDone done) { answerer.Start(std::move(done)); },
      [](absl::Duration, uint64_t) {});
  EXPECT_GE(record.succeeded(), 5u);
  EXPECT_LE(answerer.most(), 5u);
}

TEST(LoadGeneratorTest, MakesAsManyCallsOfAClosedLoopAsItIsTold) {
  for (const uint64_t calls : {1, 7}) {
    Answerer answerer;
    const LoadPlan plan{.concurrency = 3,
                        .rate = 0,
                        .seed = 1,
                        .warm_up = absl::ZeroDuration(),
                        .duration = absl::ZeroDuration(),
                        .calls = calls};
    const LoadRecord record = RunLoad(
        plan, [&](LoadDone done) { answerer.Start(std::move(done)); },
        [](absl::Duration, uint64_t) {});
    EXPECT_EQ(record.succeeded(), calls);
    EXPECT_LT(record.elapsed(), absl::Hours(1));
  }
}

// Each call fails at once, so that without a pause there would be thousands.
TEST(LoadGeneratorTest, PausesAClosedLoopAfterAFailure) {
  std::mutex mutex;
  std::vector<std::thread> failures;
  const LoadPlan plan{.concurrency = 2,
                      .rate = 0,
                      .seed = 1,
                      .warm_up = absl::ZeroDuration(),
                      .duration = absl::Milliseconds(50)};
  const LoadRecord record = RunLoad(
      plan,
      [&](LoadDone done) {
        std::lock_guard<std::mutex> lock(mutex);
        failures.emplace_back([done = std::move(done)] { done("GONE"); });
      },
      [](absl::Duration, uint64_t) {});
  for (std::thread& failure : failures) failure.join();
  EXPECT_EQ(record.succeeded(), 0u);
  EXPECT_LE(record.failed(), 2u);
}

TEST(LoadGeneratorTest, StartsAnOpenLoopsCallsWhetherOrNotEarlierOnesHaveEnded) {
  std::mutex mutex;
  std::vector<LoadDone> held;
  std::thread releaser;
  uint64_t started = 0;
  // 100 calls are due on average; they are all held until the last one that was due has started.
  const LoadPlan plan{.concurrency = 1,
                      .rate = 2000,
                      .seed = 1,
                      .warm_up = absl::ZeroDuration(),
                      .duration = absl::Milliseconds(50)};
  std::mt19937_64 random(plan.seed);
  std::uniform_real_distribution<double> chance(0, 1);
  uint64_t due = 0;
  for (absl::Duration t; (t += PoissonGap(plan.rate, chance(random))) < plan.duration;) ++due;
  const LoadRecord record = RunLoad(
      plan,
      [&](LoadDone done) {
        std::lock_guard<std::mutex> lock(mutex);
        held.push_back(std::move(done));
        if (++started < due) return;
        releaser = std::thread([&] {
          std::lock_guard<std::mutex> releasing(mutex);
          for (const LoadDone& end : held) end("");
        });
      },
      [](absl::Duration, uint64_t) {});
  releaser.join();
  EXPECT_GT(due, 50u);
  EXPECT_EQ(record.succeeded(), due);
}

}  // namespace
}  // namespace maxsimd
