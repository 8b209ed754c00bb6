#include "kernels/cpu/thread_pool.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

TEST(ThreadPoolTest, EveryItemRunsOnceAndItsWritesAreSeen) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const size_t items : {0, 1, 2, 3, 1000}) {
      std::vector<int> runs(items);  // Not atomic: ThreadSanitizer judges the hand-over.
      pool.Run(items, [&](size_t item, int) { ++runs[item]; });
      for (const int count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, ManyJobsInARowLoseNoItem) {
  ThreadPool pool(4);
  std::atomic<size_t> sum{0};
  for (int job = 0; job < 2000; ++job) {
    pool.Run(5, [&](size_t item, int) { sum += item + 1; });
  }
  EXPECT_EQ(sum, 2000u * 15);
}

TEST(ThreadPoolTest, ThreadsThatRunAtTheSameTimeHaveDifferentNumbers) {
  ThreadPool pool(3);
  // Each item waits until all three run: so each must be on a thread of its own.
  std::atomic<int> arrived{0};
  std::vector<std::atomic<int>> items_of_thread(3);
  pool.Run(3, [&](size_t, int thread) {
    ++items_of_thread[thread];
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  for (const std::atomic<int>& items : items_of_thread) EXPECT_EQ(items, 1);
}

TEST(ThreadPoolTest, ALoneItemRunsOnTheCaller) {
  ThreadPool pool(3);
  std::thread::id runner;
  pool.Run(1, [&](size_t, int thread) {
    EXPECT_EQ(thread, 0);
    runner = std::this_thread::get_id();
  });
  EXPECT_EQ(runner, std::this_thread::get_id());
}

TEST(ThreadPoolTest, StopsWithoutEverHavingRun) {
  ThreadPool pool(8);
}

}  // namespace
}  // namespace maxsimd
