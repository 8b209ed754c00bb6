// Whose units ride next: turns between lanes, lanes that leave, and lanes whose results pile up.
#include <map>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/batching/batch_queue.h"
#include "tests/testing/fake_work.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Time kStart = absl::UnixEpoch();

Unit UnitOf(uint64_t multiply_adds, size_t result_bytes = 1) {
  return {.row_count = 1, .multiply_adds = multiply_adds, .result_bytes = result_bytes};
}

std::shared_ptr<Work> WorkOfUnits(size_t count, uint64_t multiply_adds = 1) {
  return WorkOf(std::vector<Unit>(count, UnitOf(multiply_adds)));
}

// Full at 160 multiply-adds, of which a turn is a sixteenth, 10; and by nothing else.
BatchLimits SixteenTurnsOfTen() {
  BatchLimits limits;
  limits.buffers = 2;
  limits.buffer_bytes = 1'000'000;
  limits.max_multiply_adds = 160;
  return limits;
}

BatchQueue NewQueue(const BatchLimits& limits) {
  return BatchQueue(limits,
                    [](ElementType type, uint32_t dim) { return dim * ElementBytes(type); });
}

// Units of each work in the batch.
std::map<const Work*, size_t> UnitsOf(const Batch& batch) {
  std::map<const Work*, size_t> units;
  for (const Placement& placement : batch.placements) {
    units[placement.work.get()] += placement.unit_count;
  }
  return units;
}

// Fills, copies and takes the next batch.
Batch* Next(BatchQueue& queue) {
  for (const CopyTask& task : queue.Fill(kStart)) queue.Copied(task, absl::ZeroDuration());
  return queue.Take(kStart);
}

TEST(BatchQueueTurnsTest, SharesABatchEvenlyBetweenLanesThatHaveEnough) {
  BatchQueue queue = NewQueue(SixteenTurnsOfTen());
  const std::shared_ptr<Work> one = WorkOfUnits(1000);
  const std::shared_ptr<Work> coarse = WorkOfUnits(1000, 5);
  queue.Push(queue.AddLane(), one);
  queue.Push(queue.AddLane(), coarse);
  const Batch* const batch = Next(queue);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(UnitsOf(*batch)[one.get()], 80u);
  EXPECT_EQ(UnitsOf(*batch)[coarse.get()], 16u);
}

TEST(BatchQueueTurnsTest, GivesASmallLaneItsShareAndTheRestToTheLargeOne) {
  BatchQueue queue = NewQueue(SixteenTurnsOfTen());
  const std::shared_ptr<Work> large = WorkOfUnits(1000);
  const std::shared_ptr<Work> small = WorkOfUnits(15);
  queue.Push(queue.AddLane(), large);
  queue.Push(queue.AddLane(), small);
  const Batch* const batch = Next(queue);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(UnitsOf(*batch)[small.get()], 15u);
  EXPECT_EQ(UnitsOf(*batch)[large.get()], 145u);
}

TEST(BatchQueueTurnsTest, PutsASmallLaneIntoTheFirstBatchThatFillsAfterItArrives) {
  BatchQueue queue = NewQueue(SixteenTurnsOfTen());
  const std::shared_ptr<Work> large = WorkOfUnits(1000);
  queue.Push(queue.AddLane(), large);
  Batch* const first = Next(queue);  // By now the large lane fills both buffers.
  ASSERT_NE(first, nullptr);
  const std::shared_ptr<Work> small = WorkOfUnits(10);
  queue.Push(queue.AddLane(), small);
  EXPECT_THAT(queue.Fill(kStart), IsEmpty());
  queue.Release(first);
  Batch* const second = Next(queue);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(UnitsOf(*second).count(small.get()), 0u);
  const Batch* const third = queue.Take(kStart);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(UnitsOf(*third)[small.get()], 10u);
}

TEST(BatchQueueTurnsTest, SavesUpForAUnitThatIsLargerThanATurn) {
  BatchQueue queue = NewQueue(SixteenTurnsOfTen());
  const std::shared_ptr<Work> large = WorkOfUnits(2, 35);
  const std::shared_ptr<Work> small = WorkOfUnits(1000);
  queue.Push(queue.AddLane(), large);
  queue.Push(queue.AddLane(), small);
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  // Three turns are too few for 35; with the fourth it has 40.
  ASSERT_GE(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].placement.work, small);
  EXPECT_EQ(tasks[0].placement.unit_count, 30u);
  EXPECT_EQ(tasks[1].placement.work, large);
  // 5 are left, so three more turns make 35.
  EXPECT_EQ(tasks[2].placement.unit_count, 30u);
  EXPECT_EQ(tasks[3].placement.work, large);
}

TEST(BatchQueueTurnsTest, NeedsNoRoundPerTurnThatAUnitTakes) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_multiply_adds = 1;  // A turn is 1: counting to 1e15 would never end.
  limits.buffers = 4;
  BatchQueue queue = NewQueue(limits);
  const std::shared_ptr<Work> larger = WorkOfUnits(1, 1'000'000'000'000'000);
  const std::shared_ptr<Work> large = WorkOfUnits(1, 999'999'999'999'999);
  queue.Push(queue.AddLane(), larger);
  queue.Push(queue.AddLane(), large);
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_EQ(tasks[0].placement.work, large);  // A turn sooner.
  EXPECT_EQ(tasks[1].placement.work, larger);
}

TEST(BatchQueueTurnsTest, LetsALaneThatWasIdleSaveUpNothing) {
  BatchQueue queue = NewQueue(SixteenTurnsOfTen());
  const BatchQueue::LaneId idle = queue.AddLane();
  for (int i = 0; i < 10; ++i) {
    queue.Push(idle, WorkOfUnits(1));  // Uses 1 of each turn's 10.
    queue.Fill(kStart);
  }
  const std::shared_ptr<Work> other = WorkOfUnits(10);
  const std::shared_ptr<Work> again = WorkOfUnits(100);
  queue.Push(idle, again);
  queue.Push(queue.AddLane(), other);
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_GE(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].placement.unit_count, 10u);
  EXPECT_EQ(tasks[1].placement.work, other);
}

TEST(BatchQueueTurnsTest, ContinuesATurnThatAFullBatchCutShort) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_tokens = 4;
  limits.buffers = 8;
  BatchQueue queue = NewQueue(limits);
  const std::shared_ptr<Work> a = WorkOfUnits(20);
  const std::shared_ptr<Work> b = WorkOfUnits(20);
  queue.Push(queue.AddLane(), a);
  queue.Push(queue.AddLane(), b);
  std::vector<const Work*> order;
  for (const CopyTask& task : queue.Fill(kStart)) {
    order.insert(order.end(), task.placement.unit_count, task.placement.work.get());
  }
  ASSERT_THAT(order, SizeIs(32));
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(order[i], i / 10 % 2 == 0 ? a.get() : b.get()) << i;
  }
}

TEST(BatchQueueTurnsTest, RemovesALaneInTheMiddleOfItsTurn) {
  for (const bool front : {true, false}) {
    BatchLimits limits = SixteenTurnsOfTen();
    limits.max_tokens = 4;
    BatchQueue queue = NewQueue(limits);
    const BatchQueue::LaneId a = queue.AddLane();
    const BatchQueue::LaneId b = queue.AddLane();
    const std::shared_ptr<Work> work_a = WorkOfUnits(20);
    const std::shared_ptr<Work> work_b = WorkOfUnits(20);
    queue.Push(a, work_a);
    queue.Push(a, WorkOfUnits(3));
    queue.Push(b, work_b);
    queue.Push(b, WorkOfUnits(3));
    Batch* const batch = Next(queue);  // Both buffers hold 4 of lane a's turn of 10.
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(queue.waiting_units(), 46u - 8);
    EXPECT_THAT(queue.RemoveLane(front ? a : b), SizeIs(2));
    EXPECT_EQ(queue.waiting_units(), front ? 23u : 15u);
    EXPECT_EQ(queue.lanes(), 1u);
    queue.Release(batch);
    const std::vector<CopyTask> tasks = queue.Fill(kStart);
    ASSERT_THAT(tasks, SizeIs(1));
    EXPECT_EQ(tasks[0].placement.work, front ? work_b : work_a);
    EXPECT_EQ(tasks[0].placement.first_unit, front ? 0u : 8u);
    EXPECT_EQ(tasks[0].placement.unit_count, 4u);
  }
}

TEST(BatchQueueTurnsTest, GivesTheLaneBehindARemovedOneAFullTurn) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_tokens = 4;
  limits.buffers = 1;
  BatchQueue queue = NewQueue(limits);
  const BatchQueue::LaneId a = queue.AddLane();
  queue.Push(a, WorkOfUnits(20));
  Batch* batch = Next(queue);
  const std::shared_ptr<Work> b = WorkOfUnits(20);
  const std::shared_ptr<Work> c = WorkOfUnits(20);
  queue.Push(queue.AddLane(), b);
  queue.Push(queue.AddLane(), c);
  queue.RemoveLane(a);  // In the middle of its turn: b must be charged anew.
  std::vector<const Work*> order;
  for (int i = 0; i < 5; ++i) {
    queue.Release(batch);
    batch = Next(queue);
    ASSERT_NE(batch, nullptr);
    for (const Placement& placement : batch->placements) {
      order.insert(order.end(), placement.unit_count, placement.work.get());
    }
  }
  ASSERT_THAT(order, SizeIs(20));
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(order[i], i < 10 ? b.get() : c.get()) << i;
}

TEST(BatchQueueTurnsTest, IgnoresLanesThatAreGone) {
  BatchQueue queue = NewQueue(SixteenTurnsOfTen());
  const BatchQueue::LaneId lane = queue.AddLane();
  EXPECT_THAT(queue.RemoveLane(lane), IsEmpty());
  EXPECT_THAT(queue.RemoveLane(lane), IsEmpty());
  queue.Push(lane, WorkOfUnits(1));
  queue.ReleaseResults(lane, 1);
  EXPECT_EQ(queue.waiting_units(), 0u);
  EXPECT_THAT(queue.Fill(kStart), IsEmpty());
}

TEST(BatchQueueTurnsTest, RemoveAllDropsEveryLaneAndClosesTheOpenBatch) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_delay = absl::Hours(1);
  limits.buffers = 1;
  BatchQueue queue = NewQueue(limits);
  const std::shared_ptr<Work> placed = WorkOfUnits(3);
  queue.Push(queue.AddLane(), placed);
  for (const CopyTask& task : queue.Fill(kStart)) queue.Copied(task, absl::ZeroDuration());
  EXPECT_EQ(queue.Take(kStart), nullptr);
  EXPECT_THAT(queue.RemoveAll(), IsEmpty());
  EXPECT_EQ(queue.lanes(), 0u);
  const Batch* const batch = queue.Take(kStart);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(UnitsOf(*batch)[placed.get()], 3u);
  queue.Push(queue.AddLane(), WorkOfUnits(2));
  queue.Push(queue.AddLane(), WorkOfUnits(2));
  EXPECT_THAT(queue.RemoveAll(), SizeIs(2));
  EXPECT_EQ(queue.waiting_units(), 0u);
}

TEST(BatchQueueTurnsTest, HoldsBackALaneWhoseResultsPileUp) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_lane_result_bytes = 100;
  BatchQueue queue = NewQueue(limits);
  const BatchQueue::LaneId slow = queue.AddLane();
  queue.Push(slow, WorkOf(std::vector<Unit>(5, UnitOf(1, 50))));
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(tasks[0].placement.unit_count, 2u);
  EXPECT_FALSE(queue.CanFill());
  // It stalls only itself.
  const std::shared_ptr<Work> other = WorkOfUnits(1);
  queue.Push(queue.AddLane(), other);
  ASSERT_THAT(queue.Fill(kStart), SizeIs(1));
  queue.ReleaseResults(slow, 49);
  EXPECT_FALSE(queue.CanFill());
  queue.ReleaseResults(slow, 1);
  EXPECT_TRUE(queue.CanFill());
  const std::vector<CopyTask> more = queue.Fill(kStart);
  ASSERT_THAT(more, SizeIs(1));
  EXPECT_EQ(more[0].placement.first_unit, 2u);
  EXPECT_EQ(more[0].placement.unit_count, 1u);
}

TEST(BatchQueueTurnsTest, LetsAResultOverTheLanesLimitThroughOnlyAlone) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_lane_result_bytes = 100;
  BatchQueue queue = NewQueue(limits);
  const BatchQueue::LaneId lane = queue.AddLane();
  queue.Push(lane, WorkOf({UnitOf(1, 1), UnitOf(1, 1000), UnitOf(1, 1)}));
  ASSERT_THAT(queue.Fill(kStart), SizeIs(1));
  EXPECT_THAT(queue.Fill(kStart), IsEmpty());
  queue.ReleaseResults(lane, 1);
  std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(tasks[0].placement.result_bytes(), 1000u);
  queue.ReleaseResults(lane, 899);
  EXPECT_THAT(queue.Fill(kStart), IsEmpty());
  queue.ReleaseResults(lane, 2);  // 99 are left: 1 more is 100.
  tasks = queue.Fill(kStart);
  EXPECT_THAT(tasks, SizeIs(1));
}

TEST(BatchQueueTurnsTest, TakesMoreReleasedThanHeldForNothingHeld) {
  BatchLimits limits = SixteenTurnsOfTen();
  limits.max_lane_result_bytes = 100;
  BatchQueue queue = NewQueue(limits);
  const BatchQueue::LaneId lane = queue.AddLane();
  queue.ReleaseResults(lane, 1000);
  queue.Push(lane, WorkOf(std::vector<Unit>(3, UnitOf(1, 50))));
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(tasks[0].placement.unit_count, 2u);
}

}  // namespace
}  // namespace maxsimd
