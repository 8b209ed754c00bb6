// Runs the items of one job on a fixed number of threads, the caller's among them.
//
// Items are taken from an atomic counter, so that their order is that of their index and none waits
// for a slower thread's share.  Helpers sleep between jobs; a job wakes no more of them than it has
// further items.
//
// Threads: Run may be called by one thread at a time.  What the caller wrote before Run is visible
// to the task, what the task wrote is visible after Run.  The task must not throw, nor call Run.
#ifndef MAXSIMD_KERNELS_CPU_THREAD_POOL_H_
#define MAXSIMD_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"

#include "kernels/mutex.h"

namespace maxsimd {

class ThreadPool {
 public:
  // `thread` is below threads() and differs between calls that run at the same time; 0 is the
  // caller.
  using Task = absl::FunctionRef<void(size_t item, int thread)>;

  // Starts threads - 1 helpers; threads is at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls task(item, thread) once for each item in [0, items), and returns when all have returned.
  void Run(size_t items, Task task);

 private:
  void Help(int thread);
  void TakeItems(Task task, int thread);

  Mutex mutex_;
  CondVar job_changed_;
  CondVar helpers_left_;
  // The job that helpers may join; null between jobs, so that one that wakes late finds nothing.
  const Task* task_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t job_ ABSL_GUARDED_BY(mutex_) = 0;  // How many there have been: nobody joins one twice.
  int working_ ABSL_GUARDED_BY(mutex_) = 0;   // Helpers within the job.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Written only while no helper is within a job, and published by mutex_.
  size_t items_ = 0;
  std::atomic<size_t> next_item_{0};

  std::vector<std::thread> helpers_;  // Last: they use all of the above.
};

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_THREAD_POOL_H_
