// When a batch starts, what fills it, and where its rows lie.
#include "server/batching/batch_queue.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/testing/fake_work.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kTick = absl::Nanoseconds(1);

Unit Rows(uint64_t rows, uint64_t multiply_adds = 1, size_t result_bytes = 1) {
  return {.row_count = rows, .multiply_adds = multiply_adds, .result_bytes = result_bytes};
}

// Unpadded float32 rows: 16 bytes at WorkOf's dim of 4.
size_t Unpadded(ElementType type, uint32_t dim) {
  return dim * ElementBytes(type);
}

// Nothing is full before 1,000 rows of 16 bytes.
BatchLimits Roomy() {
  BatchLimits limits;
  limits.buffers = 3;
  limits.buffer_bytes = 16'000;
  limits.max_tokens = 1'000'000;
  limits.max_multiply_adds = 1'000'000;
  limits.max_result_bytes = 1'000'000;
  limits.max_lane_result_bytes = 1'000'000;
  return limits;
}

// Pushes one message to a lane of its own, and reserves its room.
std::vector<CopyTask> PushAndFill(BatchQueue& queue, std::vector<Unit> units,
                                  absl::Time now = kStart) {
  queue.Push(queue.AddLane(), WorkOf(std::move(units)));
  return queue.Fill(now);
}

void CopyAll(BatchQueue& queue, const std::vector<CopyTask>& tasks) {
  for (const CopyTask& task : tasks) queue.Copied(task, absl::ZeroDuration());
}

TEST(BatchQueueTest, StartsALoneMessageAtOnce) {
  BatchQueue queue(Roomy(), Unpadded);
  const std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(10)});
  ASSERT_THAT(tasks, SizeIs(1));
  CopyAll(queue, tasks);
  EXPECT_EQ(queue.NextWake(), kStart);
  const Batch* const batch = queue.Take(kStart);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->tokens, 10u);
  EXPECT_EQ(batch->used_bytes, 160u);
  EXPECT_EQ(batch->opened, kStart);
}

TEST(CutCopiesTest, PiecesEndWithUnitsAndCoverWhatWasToBeCopied) {
  BatchQueue queue(Roomy(), Unpadded);
  std::vector<CopyTask> tasks =
      PushAndFill(queue, {Rows(2), Rows(1), Rows(10), Rows(1), Rows(1), Rows(1), Rows(3)});
  ASSERT_THAT(tasks, SizeIs(1));
  const std::vector<CopyTask> pieces = CutCopies(tasks, 3 * 16);
  const size_t units[] = {2, 1, 3, 1};
  const uint64_t rows[] = {3, 10, 3, 3};
  ASSERT_THAT(pieces, SizeIs(4));
  size_t unit = 0;
  size_t offset = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pieces[i].batch, tasks[0].batch);
    EXPECT_EQ(pieces[i].placement.first_unit, unit);
    EXPECT_EQ(pieces[i].placement.unit_count, units[i]);
    EXPECT_EQ(pieces[i].placement.row_count(), rows[i]);
    EXPECT_EQ(pieces[i].placement.buffer_offset, offset);
    unit += units[i];
    offset += rows[i] * 16;
  }
  EXPECT_EQ(offset, tasks[0].placement.buffer_end());
}

TEST(CutCopiesTest, WhatIsSmallOrOneUnitStaysWhole) {
  BatchQueue queue(Roomy(), Unpadded);
  std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(3), Rows(3)});
  EXPECT_THAT(CutCopies(tasks, 6 * 16), SizeIs(1));
  tasks = PushAndFill(queue, {Rows(50)});
  EXPECT_THAT(CutCopies(tasks, 16), SizeIs(1));
  EXPECT_THAT(CutCopies({}, 16), IsEmpty());
}

TEST(BatchQueueTest, HasNothingToStartOrToWaitForWhenEmpty) {
  BatchQueue queue(Roomy(), Unpadded);
  EXPECT_EQ(queue.Take(kStart), nullptr);
  EXPECT_EQ(queue.NextWake(), absl::InfiniteFuture());
  EXPECT_FALSE(queue.CanFill());
  EXPECT_FALSE(queue.HasReady());
  EXPECT_THAT(queue.Fill(kStart), IsEmpty());
}

TEST(BatchQueueTest, HoldsABatchUntilExactlyMaxDelay) {
  BatchLimits limits = Roomy();
  limits.max_delay = absl::Milliseconds(5);
  BatchQueue queue(limits, Unpadded);
  CopyAll(queue, PushAndFill(queue, {Rows(10)}));
  // A later unit doesn't put the start off.
  CopyAll(queue, PushAndFill(queue, {Rows(10)}, kStart + absl::Milliseconds(4)));
  EXPECT_EQ(queue.NextWake(), kStart + limits.max_delay);
  EXPECT_EQ(queue.Take(kStart + limits.max_delay - kTick), nullptr);
  const Batch* const batch = queue.Take(kStart + limits.max_delay);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->tokens, 20u);
}

TEST(BatchQueueTest, StartsAFullBatchBeforeMaxDelay) {
  BatchLimits limits = Roomy();
  limits.max_delay = absl::Hours(1);
  limits.max_tokens = 10;
  BatchQueue queue(limits, Unpadded);
  CopyAll(queue, PushAndFill(queue, {Rows(10)}));
  EXPECT_FALSE(queue.HasReady());  // Nobody knows yet that nothing more fits.
  EXPECT_EQ(queue.Take(kStart), nullptr);
  CopyAll(queue, PushAndFill(queue, {Rows(1)}));
  EXPECT_TRUE(queue.HasReady());
  const Batch* const batch = queue.Take(kStart);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->tokens, 10u);
  EXPECT_EQ(queue.Take(kStart), nullptr);
}

// Two units of `unit` share a batch under `limits`, but not with `one_less` of what they use up.
void ExpectBoundary(const BatchLimits& limits, const BatchLimits& one_less, const Unit& unit) {
  BatchQueue fits(limits, Unpadded);
  EXPECT_THAT(PushAndFill(fits, {unit, unit}), SizeIs(1));
  BatchQueue full(one_less, Unpadded);
  const std::vector<CopyTask> tasks = PushAndFill(full, {unit, unit});
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_NE(tasks[0].batch, tasks[1].batch);
  EXPECT_EQ(tasks[1].placement.buffer_offset, 0u);
}

TEST(BatchQueueTest, IsFullByBytes) {
  BatchLimits limits = Roomy();
  limits.buffer_bytes = 320;
  BatchLimits one_less = limits;
  one_less.buffer_bytes = 319;
  ExpectBoundary(limits, one_less, Rows(10));
}

TEST(BatchQueueTest, IsFullByTokens) {
  BatchLimits limits = Roomy();
  limits.max_tokens = 20;
  BatchLimits one_less = limits;
  one_less.max_tokens = 19;
  ExpectBoundary(limits, one_less, Rows(10));
}

TEST(BatchQueueTest, IsFullByMultiplyAdds) {
  BatchLimits limits = Roomy();
  limits.max_multiply_adds = 200;
  BatchLimits one_less = limits;
  one_less.max_multiply_adds = 199;
  ExpectBoundary(limits, one_less, Rows(10, 100));
}

TEST(BatchQueueTest, IsFullByResultBytes) {
  BatchLimits limits = Roomy();
  limits.max_result_bytes = 200;
  BatchLimits one_less = limits;
  one_less.max_result_bytes = 199;
  ExpectBoundary(limits, one_less, Rows(10, 1, 100));
}

TEST(BatchQueueTest, LetsAUnitOverALimitRideAlone) {
  for (const Unit& large : {Rows(11), Rows(1, 101), Rows(1, 1, 1001)}) {
    BatchLimits limits = Roomy();
    limits.max_tokens = 10;
    limits.max_multiply_adds = 100;
    limits.max_result_bytes = 1000;
    BatchQueue queue(limits, Unpadded);
    const std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(1), large, Rows(1)});
    ASSERT_THAT(tasks, SizeIs(3));
    CopyAll(queue, tasks);
    std::vector<size_t> first_units;
    while (Batch* const batch = queue.Take(kStart)) {
      ASSERT_THAT(batch->placements, SizeIs(1));
      first_units.push_back(batch->placements[0].first_unit);
    }
    EXPECT_THAT(first_units, ElementsAre(0, 1, 2));
  }
}

TEST(BatchQueueTest, StartsFullBatchesFirstInFirstOut) {
  BatchLimits limits = Roomy();
  limits.max_tokens = 10;
  BatchQueue queue(limits, Unpadded);
  const std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(10), Rows(10), Rows(10)});
  ASSERT_THAT(tasks, SizeIs(3));
  CopyAll(queue, tasks);
  for (const CopyTask& task : tasks) EXPECT_EQ(queue.Take(kStart), task.batch);
}

TEST(BatchQueueTest, PassesOverABatchThatIsStillBeingCopied) {
  BatchLimits limits = Roomy();
  limits.max_tokens = 10;
  BatchQueue queue(limits, Unpadded);
  const std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(10), Rows(10), Rows(10)});
  ASSERT_THAT(tasks, SizeIs(3));
  EXPECT_EQ(queue.Take(kStart), nullptr);
  queue.Copied(tasks[1], absl::ZeroDuration());
  EXPECT_EQ(queue.Take(kStart), tasks[1].batch);
  EXPECT_EQ(queue.Take(kStart), nullptr);
  queue.Copied(tasks[0], absl::ZeroDuration());
  EXPECT_EQ(queue.Take(kStart), tasks[0].batch);
}

TEST(BatchQueueTest, StartsADueBatchWhileAnEarlierOneIsBeingCopied) {
  BatchQueue queue(Roomy(), Unpadded);
  const std::vector<CopyTask> slow = PushAndFill(queue, {Rows(10)});
  EXPECT_EQ(queue.Take(kStart), nullptr);  // Closes it: it is due, but not copied.
  const std::vector<CopyTask> quick = PushAndFill(queue, {Rows(10)});
  ASSERT_NE(quick[0].batch, slow[0].batch);
  CopyAll(queue, quick);
  EXPECT_EQ(queue.Take(kStart), quick[0].batch);
}

TEST(BatchQueueTest, NeverAsksToBeWokenForABatchThatIsBeingCopied) {
  BatchQueue queue(Roomy(), Unpadded);
  for (int i = 0; i < 2; ++i) {
    PushAndFill(queue, {Rows(10)});
    EXPECT_EQ(queue.Take(kStart), nullptr);
    EXPECT_EQ(queue.NextWake(), absl::InfiniteFuture());  // Else the worker would spin.
  }
}

TEST(BatchQueueTest, FillsNothingWhileEveryBufferIsInUse) {
  BatchLimits limits = Roomy();
  limits.buffers = 2;
  limits.max_tokens = 10;
  BatchQueue queue(limits, Unpadded);
  const std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(10), Rows(10), Rows(10)});
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_NE(tasks[0].batch->buffer, tasks[1].batch->buffer);
  EXPECT_EQ(queue.waiting_units(), 1u);
  CopyAll(queue, tasks);
  Batch* const batch = queue.Take(kStart);
  EXPECT_THAT(queue.Fill(kStart), IsEmpty());  // A batch that is scored keeps its buffer.
  EXPECT_FALSE(queue.CanFill());
  const int buffer = batch->buffer;
  queue.Release(batch);
  EXPECT_TRUE(queue.CanFill());
  const std::vector<CopyTask> more = queue.Fill(kStart);
  ASSERT_THAT(more, SizeIs(1));
  EXPECT_EQ(more[0].batch->buffer, buffer);
  EXPECT_EQ(queue.waiting_units(), 0u);
}

TEST(BatchQueueTest, MergesUnitsThatLieBackToBack) {
  BatchQueue queue(Roomy(), Unpadded);
  const std::vector<CopyTask> tasks = PushAndFill(queue, {Rows(3), Rows(4), Rows(5)});
  ASSERT_THAT(tasks, SizeIs(1));
  const Placement& placement = tasks[0].placement;
  EXPECT_EQ(placement.first_row(), 0u);
  EXPECT_EQ(placement.row_count(), 12u);
  EXPECT_EQ(placement.buffer_end(), 12u * 16);
  EXPECT_EQ(placement.result_bytes(), 3u);
  EXPECT_THAT(placement.documents(), ElementsAre(0, 1, 2));
  CopyAll(queue, tasks);
  ASSERT_THAT(queue.Take(kStart)->placements, SizeIs(1));
}

TEST(BatchQueueTest, DoesNotMergeUnitsWithAGapOrAnOverlap) {
  for (const uint64_t second_row : {uint64_t{2}, uint64_t{4}}) {
    BatchQueue queue(Roomy(), Unpadded);
    const std::shared_ptr<Work> work = WorkOf({Rows(3), Rows(3)});
    work->chunk.units[1].first_row = second_row;
    queue.Push(queue.AddLane(), work);
    const std::vector<CopyTask> tasks = queue.Fill(kStart);
    ASSERT_THAT(tasks, SizeIs(2));
    EXPECT_EQ(tasks[1].placement.buffer_offset, 48u);
    EXPECT_EQ(tasks[1].placement.first_row(), second_row);
  }
}

TEST(BatchQueueTest, DoesNotMergeMessages) {
  BatchQueue queue(Roomy(), Unpadded);
  const BatchQueue::LaneId lane = queue.AddLane();
  queue.Push(lane, WorkOf({Rows(3)}));
  queue.Push(lane, WorkOf({Rows(3)}));
  EXPECT_THAT(queue.Fill(kStart), SizeIs(2));
}

TEST(BatchQueueTest, PutsEachPlacementAtAMultipleOfItsPitch) {
  const auto padded = [](ElementType type, uint32_t dim) {
    return (dim * ElementBytes(type) + 15) / 16 * 16;
  };
  BatchQueue queue(Roomy(), padded);
  const BatchQueue::LaneId lane = queue.AddLane();
  queue.Push(lane, WorkOf({Rows(1)}, 3, ElementType::kFloat16));   // 6 bytes: pitch 16.
  queue.Push(lane, WorkOf({Rows(2)}, 5, ElementType::kFloat32));   // 20 bytes: pitch 32.
  queue.Push(lane, WorkOf({Rows(1)}, 12, ElementType::kFloat32));  // pitch 48.
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_THAT(tasks, SizeIs(3));
  EXPECT_EQ(tasks[0].placement.buffer_offset, 0u);
  EXPECT_EQ(tasks[1].placement.buffer_offset, 32u);  // Behind 16, up to a multiple of 32.
  EXPECT_EQ(tasks[2].placement.buffer_offset, 96u);  // 32 + 2 * 32 is one of 48 already.
  EXPECT_EQ(tasks[2].placement.buffer_end(), 144u);
  EXPECT_EQ(tasks[0].batch->used_bytes, 144u);
}

TEST(BatchQueueTest, CountsTheGapBeforeALargerPitchAsUsed) {
  BatchLimits limits = Roomy();
  limits.buffer_bytes = 64 + 2 * 64 - 1;  // 16 + 2 * 64 would fit.
  BatchQueue queue(limits, Unpadded);
  const BatchQueue::LaneId lane = queue.AddLane();
  queue.Push(lane, WorkOf({Rows(1)}, 4));
  queue.Push(lane, WorkOf({Rows(1), Rows(1)}, 16));
  const std::vector<CopyTask> tasks = queue.Fill(kStart);
  ASSERT_THAT(tasks, SizeIs(3));
  EXPECT_EQ(tasks[1].batch, tasks[0].batch);
  EXPECT_NE(tasks[2].batch, tasks[0].batch);
}

TEST(BatchQueueTest, AddsUpWhatCopyingTook) {
  BatchQueue queue(Roomy(), Unpadded);
  const std::vector<CopyTask> first = PushAndFill(queue, {Rows(1)});
  const std::vector<CopyTask> second = PushAndFill(queue, {Rows(1)});
  queue.Copied(first[0], absl::Microseconds(2));
  EXPECT_EQ(queue.Take(kStart), nullptr);
  queue.Copied(second[0], absl::Microseconds(3));
  const Batch* const batch = queue.Take(kStart);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->pack, absl::Microseconds(5));
}

}  // namespace
}  // namespace maxsimd
