// The threads around BatchQueue: copies waiting documents into the open batch, scores batches,
// hands out the scores.
//
// A message is copied by the thread that submits it when there is room, and the batch is scored by
// that thread too when a scorer is idle and the batch is short, so that a lone small call sees no
// hand-over (waking a sleeping thread takes longer than scoring it).  Only one thread does so at a
// time: a device that hangs must not stop all of gRPC's threads, of which there may be two.  All
// else is done by whichever worker is free first.  There is one worker per batch that the scorers
// take at a time, and one more, so that copying and handing out scores overlap with scoring.
//
// One thread copies about half as fast as eight connections deliver.  So where there are processors
// for it (BatchLimits::copy_threads) what is to be copied is cut into pieces that workers share,
// and there are as many workers more.
//
// Failure: a scorer that answers Unavailable is lost: its batch's calls fail Unavailable and it
// gets no further batch; when the last one is lost everything that waits fails, and
// `on_device_lost` has been called for each.  Any other error fails the batch's calls only.
//
// Threads: every method is thread-safe.  No lock is held while a Recipient is called.
#ifndef MAXSIMD_SERVER_BATCHING_BATCHER_H_
#define MAXSIMD_SERVER_BATCHING_BATCHER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "kernels/mutex.h"
#include "kernels/packed_buffer.h"
#include "kernels/scorer.h"
#include "server/batching/batch_queue.h"

namespace maxsimd {

// Since the start; what the tests of "one copy" and the logs read.
struct BatcherCounters {
  uint64_t batches = 0;
  uint64_t groups = 0;
  uint64_t documents = 0;
  uint64_t embedding_bytes_copied = 0;
};

class Batcher {
 public:
  using LaneId = BatchQueue::LaneId;

  // Allocates the packed buffers; ResourceExhausted if there is no memory for them.  The scorers
  // must outlive the batcher.  `on_device_lost(scorer, status)` may be called on any worker.
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(
      const BatchLimits& limits, std::vector<Scorer*> scorers,
      std::function<void(int, const absl::Status&)> on_device_lost);

  // Waits for batches that are being scored; what waits is dropped.
  ~Batcher();

  LaneId AddLane() ABSL_LOCKS_EXCLUDED(mutex_);

  // The call has ended: what waits in its lane is dropped.
  void RemoveLane(LaneId lane) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a message that has at least one unit.  Its recipient gets OnCopied once and the scores
  // of each document once, or OnFailed, unless the lane is removed before; some of that may happen
  // before Submit returns.
  void Submit(LaneId lane, std::shared_ptr<Work> work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Results of the lane have been written away; see BatchQueue.
  void ReleaseResults(LaneId lane, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  BatcherCounters counters() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t lanes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Batcher(const BatchLimits& limits, std::vector<Scorer*> scorers,
          std::vector<PackedBuffer> buffers,
          std::function<void(int, const absl::Status&)> on_device_lost);

  void RunWorker() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reserves room for what waits.
  std::vector<CopyTask> FillLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies what `tasks` reserved, with others' help where there are threads for it, and returns
  // whether the last batch that it copied to is then copied whole; called without the lock, also
  // where the tasks, which may be the last to hold their messages, are freed.
  bool Copy(std::vector<CopyTask> tasks) ABSL_LOCKS_EXCLUDED(mutex_);
  // One of them; whether its batch is then copied whole.
  bool CopyOne(const CopyTask& task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves all but the first piece to whoever is free, and copies until none is left.  Where as
  // many threads copy already as there are to help, none is woken.
  bool CopyShared(std::vector<CopyTask> tasks) ABSL_LOCKS_EXCLUDED(mutex_);
  void CopyRows(const CopyTask& task) const;
  // Scores a batch on the submitting thread if it is short and can start now; else wakes a worker.
  void ScoreOrWake() ABSL_LOCKS_EXCLUDED(mutex_);
  void ScoreBatch(Batch* batch, int scorer) ABSL_LOCKS_EXCLUDED(mutex_);
  void LoseDevice(int scorer, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AllLost() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a batch that is ready would be taken: a scorer is idle, or none is left and the batch
  // is to be failed.
  bool CanTakeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !idle_.empty() || !all_lost_.ok();
  }
  // An idle scorer and the batch it shall take, if there are both.
  bool TakeLocked(uint64_t max_multiply_adds, Batch** batch, int* scorer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes a worker if there is something for it to do.
  void WakeIfWorkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<Scorer*> scorers_;
  const std::vector<PackedBuffer> buffers_;
  const std::function<void(int, const absl::Status&)> on_device_lost_;
  const uint64_t max_multiply_adds_on_submitter_;
  const int copy_threads_;
  const size_t copy_piece_bytes_;

  mutable Mutex mutex_;
  CondVar changed_;  // There may be a batch to score, room to fill, or it is time to stop.
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<CopyTask> copies_ ABSL_GUARDED_BY(mutex_);  // Reserved, and begun by no one.
  int copying_ ABSL_GUARDED_BY(mutex_) = 0;              // Threads in CopyShared and their helpers.
  std::vector<int> idle_ ABSL_GUARDED_BY(mutex_);  // Scorers, once per batch they may still take.
  std::vector<bool> lost_ ABSL_GUARDED_BY(mutex_);
  absl::Status all_lost_ ABSL_GUARDED_BY(mutex_);  // Not ok once no scorer is left.
  bool submitter_scores_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t started_workers_ ABSL_GUARDED_BY(mutex_) = 0;  // That wait, or have found something to do.
  CondVar started_;
  BatcherCounters counters_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> workers_;  // Last: they use all of the above.
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_BATCHING_BATCHER_H_
