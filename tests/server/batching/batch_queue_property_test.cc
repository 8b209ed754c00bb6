// Random operations against a model that knows only what was pushed: whatever happens, each unit is
// placed once, in order, inside its buffer and over nobody else's rows.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "server/batching/batch_queue.h"
#include "tests/testing/fake_work.h"

namespace maxsimd {
namespace {

constexpr size_t kPitchMultiple = 16;

size_t Padded(ElementType type, uint32_t dim) {
  return (dim * ElementBytes(type) + kPitchMultiple - 1) / kPitchMultiple * kPitchMultiple;
}

struct Step {
  uint64_t lane;
  const Work* work;
  size_t unit;
};

class QueueModel {
 public:
  explicit QueueModel(uint32_t seed)
      : random_(seed), limits_(RandomLimits()), queue_(limits_, Padded) {}

  void Run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      switch (Below(8)) {
        case 0:
          if (lanes_.size() < 20) lanes_.emplace(queue_.AddLane(), std::deque<Step>());
          break;
        case 1:
        case 2:
          Push();
          break;
        case 3:
          Fill();
          break;
        case 4:
          CopyOne();
          break;
        case 5:
          Take();
          break;
        case 6:
          Release();
          break;
        case 7:
          Below(4) == 0 ? RemoveLane() : ReleaseResults();
          break;
      }
      CheckCounts();
    }
  }

  // Everything that was not removed rides in the end.
  void Finish() {
    for (int round = 0; waiting() > 0 && !testing::Test::HasFailure(); ++round) {
      ASSERT_LT(round, 10'000) << "no progress";
      for (auto& [lane, steps] : lanes_) queue_.ReleaseResults(lane, size_t{1} << 40);
      Fill();
      while (!to_copy_.empty()) CopyOne();
      Take();
      while (!scoring_.empty()) Release();
      CheckCounts();
    }
  }

 private:
  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  BatchLimits RandomLimits() {
    BatchLimits limits;
    limits.buffers = static_cast<int>(2 + Below(3));
    limits.buffer_bytes = 64 * 64 + Below(5'000);  // At least the largest unit.
    limits.max_tokens = 30 + Below(200);
    limits.max_multiply_adds = 1 + Below(2'000);
    limits.max_result_bytes = 1 + Below(1'000);
    limits.max_lane_result_bytes = 1 + Below(1'000);
    limits.max_delay = absl::Nanoseconds(Below(3) * 100);
    return limits;
  }

  uint64_t AnyLane() { return std::next(lanes_.begin(), Below(lanes_.size()))->first; }

  void Push() {
    if (lanes_.empty()) return;
    const uint64_t lane = AnyLane();
    std::vector<Unit> units(1 + Below(20));
    for (Unit& unit : units) {
      unit.row_count = 1 + Below(64);
      unit.multiply_adds = 1 + Below(Below(10) == 0 ? 5'000 : 200);
      unit.result_bytes = 1 + Below(Below(10) == 0 ? 2'000 : 100);
    }
    const auto type = Below(2) == 0 ? ElementType::kFloat32 : ElementType::kFloat16;
    std::shared_ptr<Work> work =
        WorkOf(std::move(units), static_cast<uint32_t>(1 + Below(16)), type);
    for (size_t unit = 0; unit < work->chunk.units.size(); ++unit) {
      lanes_.at(lane).push_back({lane, work.get(), unit});
    }
    lane_of_[work.get()] = lane;
    works_.push_back(work);
    queue_.Push(lane, std::move(work));
  }

  void Fill() {
    for (const CopyTask& task : queue_.Fill(now_)) {
      to_copy_.push_back(task);
      CheckPlacement(task.placement);
      std::deque<Step>& steps = lanes_.at(lane_of_.at(task.placement.work.get()));
      for (size_t i = 0; i < task.placement.unit_count; ++i) {
        ASSERT_FALSE(steps.empty()) << "placed twice";
        EXPECT_EQ(steps.front().work, task.placement.work.get()) << "out of order";
        EXPECT_EQ(steps.front().unit, task.placement.first_unit + i) << "out of order";
        steps.pop_front();
      }
    }
    EXPECT_FALSE(queue_.CanFill()) << "Fill left room unused";
  }

  void CheckPlacement(const Placement& placement) {
    const Query& query = *placement.work->query;
    EXPECT_EQ(placement.pitch_bytes, Padded(query.element_type, query.dim));
    EXPECT_EQ(placement.buffer_offset % placement.pitch_bytes, 0u);
    uint64_t rows = 0;
    for (size_t i = 0; i < placement.unit_count; ++i) {
      rows += placement.work->chunk.units[placement.first_unit + i].row_count;
    }
    EXPECT_EQ(placement.row_count(), rows);
  }

  void CopyOne() {
    if (to_copy_.empty()) return;
    const size_t which = Below(to_copy_.size());
    queue_.Copied(to_copy_[which], absl::ZeroDuration());
    to_copy_.erase(to_copy_.begin() + static_cast<ptrdiff_t>(which));
  }

  void Take() {
    now_ += absl::Nanoseconds(Below(150));
    Batch* const batch = queue_.Take(now_);
    if (batch == nullptr) {
      EXPECT_GT(queue_.NextWake(), now_) << "a worker would spin";
      return;
    }
    for (const CopyTask& task : to_copy_)
      EXPECT_NE(task.batch, batch) << "taken before it is copied";
    for (const Batch* other : scoring_) EXPECT_NE(other->buffer, batch->buffer);
    CheckBatch(*batch);
    scoring_.push_back(batch);
  }

  void CheckBatch(const Batch& batch) const {
    size_t end = 0;
    size_t units = 0;
    uint64_t tokens = 0;
    uint64_t multiply_adds = 0;
    size_t result_bytes = 0;
    for (const Placement& placement : batch.placements) {
      EXPECT_GE(placement.buffer_offset, end) << "rows overlap";
      end = placement.buffer_end();
      units += placement.unit_count;
      tokens += placement.row_count();
      result_bytes += placement.result_bytes();
      for (size_t i = 0; i < placement.unit_count; ++i) {
        multiply_adds += placement.work->chunk.units[placement.first_unit + i].multiply_adds;
      }
    }
    EXPECT_GT(units, 0u);
    EXPECT_EQ(end, batch.used_bytes);
    EXPECT_LE(end, limits_.buffer_bytes);
    EXPECT_EQ(tokens, batch.tokens);
    EXPECT_EQ(multiply_adds, batch.multiply_adds);
    EXPECT_EQ(result_bytes, batch.result_bytes);
    if (units == 1) return;  // Alone it may be over a limit.
    EXPECT_LE(tokens, limits_.max_tokens);
    EXPECT_LE(multiply_adds, limits_.max_multiply_adds);
    EXPECT_LE(result_bytes, limits_.max_result_bytes);
  }

  void Release() {
    if (scoring_.empty()) return;
    const size_t which = Below(scoring_.size());
    queue_.Release(scoring_[which]);
    scoring_.erase(scoring_.begin() + static_cast<ptrdiff_t>(which));
  }

  void RemoveLane() {
    if (lanes_.empty()) return;
    const uint64_t lane = AnyLane();
    std::vector<const Work*> expected;
    for (const Step& step : lanes_.at(lane)) {
      if (expected.empty() || expected.back() != step.work) expected.push_back(step.work);
    }
    std::vector<const Work*> dropped;
    for (const std::shared_ptr<Work>& work : queue_.RemoveLane(lane)) dropped.push_back(work.get());
    EXPECT_EQ(dropped, expected);
    lanes_.erase(lane);
  }

  void ReleaseResults() {
    if (!lanes_.empty()) queue_.ReleaseResults(AnyLane(), Below(500));
  }

  size_t waiting() const {
    size_t waiting = 0;
    for (const auto& [lane, steps] : lanes_) waiting += steps.size();
    return waiting;
  }

  void CheckCounts() const {
    EXPECT_EQ(queue_.waiting_units(), waiting());
    EXPECT_EQ(queue_.lanes(), lanes_.size());
  }

  std::mt19937 random_;
  const BatchLimits limits_;
  BatchQueue queue_;
  absl::Time now_ = absl::UnixEpoch();
  std::map<uint64_t, std::deque<Step>> lanes_;  // What waits in each, in order.
  std::map<const Work*, uint64_t> lane_of_;
  std::vector<std::shared_ptr<Work>> works_;  // Kept, so that no address comes twice.
  std::vector<CopyTask> to_copy_;
  std::vector<Batch*> scoring_;
};

class BatchQueuePropertyTest : public testing::TestWithParam<uint32_t> {};

TEST_P(BatchQueuePropertyTest, PlacesEachUnitOnceInOrderAndApart) {
  QueueModel model(GetParam());
  model.Run(1'500);
  if (!HasFailure()) model.Finish();
}

INSTANTIATE_TEST_SUITE_P(Seeds, BatchQueuePropertyTest, testing::Range(0u, 20u));

}  // namespace
}  // namespace maxsimd
