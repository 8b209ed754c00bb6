// Everything at once, for ThreadSanitizer: calls that come, end early, and give results back while
// two devices score and fail.
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

#include "server/batching/batcher.h"
#include "tests/testing/fake_recipient.h"
#include "tests/testing/fake_work.h"
#include "tests/testing/puppet_scorer.h"

namespace maxsimd {
namespace {

constexpr int kThreads = 4;
constexpr absl::Duration kLongest = absl::Seconds(2);

// Fails now and then, but is never lost.
class FlakyScorer : public PuppetScorer {
 public:
  FlakyScorer() : PuppetScorer(2, 16) { ReleaseAll(); }
  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override {
    if (++count_ % 7 == 0) return absl::InternalError("flaky");
    return PuppetScorer::Score(batch);
  }

 private:
  std::atomic<int> count_{0};
};

struct Totals {
  std::atomic<size_t> scored{0};
  std::atomic<size_t> failed{0};
  std::atomic<size_t> removed{0};
};

// One client: calls of some messages, of which it waits for every other one to end.
void RunCalls(Batcher& batcher, const std::vector<std::shared_ptr<Query>>& queries, uint32_t seed,
              absl::Time end, Totals& totals) {
  std::mt19937 random(seed);
  for (int i = 0; i < 200 && absl::Now() < end; ++i) {
    const auto recipient = std::make_shared<FakeRecipient>();
    const Batcher::LaneId lane = batcher.AddLane();
    size_t documents = 0;
    const std::shared_ptr<Query>& query = queries[random() % queries.size()];
    for (size_t m = 0; m < 1 + random() % 3; ++m) {
      std::vector<uint32_t> lengths(1 + random() % 10);
      for (uint32_t& length : lengths) length = 1 + random() % 5;
      FakeMessage message = RandomMessage(random, query, recipient, lengths, documents,
                                          {.gather_bytes = 64, .max_multiply_adds = 100});
      documents += lengths.size();
      // What is freed with a message may call the batcher: it must hold no lock then.
      message.work->owner =
          std::shared_ptr<void>(nullptr, [&batcher](void*) { batcher.counters(); });
      batcher.Submit(lane, std::move(message.work));
    }
    if (random() % 2 == 0) {
      recipient->Go();
      ++totals.removed;
    } else {
      // Until all are scored, or some failed and the rest may never come.
      while (recipient->scores() < documents && recipient->failures().empty()) {
        batcher.ReleaseResults(lane, 100);
        std::this_thread::yield();
      }
      recipient->failures().empty() ? ++totals.scored : ++totals.failed;
      EXPECT_LE(recipient->scores(), documents);
      recipient->Go();
    }
    batcher.RemoveLane(lane);
  }
}

class BatcherStressTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(CopyThreads, BatcherStressTest, testing::Values(0, 2));

TEST_P(BatcherStressTest, EndsEveryCallOnceWhateverHappensAtTheSameTime) {
  std::mt19937 random(17);
  std::vector<std::shared_ptr<Query>> queries;
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat16}) {
    queries.push_back(RandomQuery(random, type, 2, 3));
    queries.push_back(RandomQuery(random, type, 1, 8));
  }
  FlakyScorer one;
  FlakyScorer two;
  BatchLimits limits;
  limits.buffer_bytes = 2'048;
  limits.max_tokens = 40;
  limits.max_lane_result_bytes = 200;
  limits.copy_threads = GetParam();
  limits.copy_piece_bytes = 32;
  Totals totals;
  {
    const std::unique_ptr<Batcher> batcher =
        *Batcher::Create(limits, {&one, &two}, [](int, const absl::Status&) { ADD_FAILURE(); });
    const absl::Time end = absl::Now() + kLongest;
    std::vector<std::thread> clients;
    for (uint32_t seed = 0; seed < kThreads; ++seed) {
      clients.emplace_back([&, seed] { RunCalls(*batcher, queries, seed, end, totals); });
    }
    for (std::thread& client : clients) client.join();
  }
  EXPECT_GT(totals.scored, 0u);
  EXPECT_GT(totals.removed, 0u);
}

}  // namespace
}  // namespace maxsimd
