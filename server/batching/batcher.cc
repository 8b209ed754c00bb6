#include "server/batching/batcher.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/time/clock.h"

#include "kernels/status_macros.h"
#include "server/batching/query_groups.h"

namespace maxsimd {
namespace {

constexpr int kNoScorer = -1;
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

// What a thread of gRPC's, which polls its connections, may score by itself: several times what it
// takes to wake a sleeping worker (30 to 50 us on a virtual machine), and small against what it may
// copy anyway (64 MiB, some 7 ms).
constexpr absl::Duration kLongestOnSubmitter = absl::Microseconds(200);

// One recipient's part of a batch: QueryGroups keeps them together.
template <typename Visit>
void ForEachRecipient(const std::vector<ScoredDocuments>& scored, const Visit& visit) {
  for (size_t first = 0, last = 0; first < scored.size(); first = last) {
    Recipient* const recipient = scored[first].work->recipient.get();
    while (last < scored.size() && scored[last].work->recipient.get() == recipient) ++last;
    visit(*recipient, absl::MakeConstSpan(scored).subspan(first, last - first));
  }
}

absl::Duration LongestWait(absl::Span<const ScoredDocuments> scored, absl::Time until) {
  absl::Duration longest;
  for (const ScoredDocuments& part : scored) {
    longest = std::max(longest, until - part.work->received);
  }
  return longest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(
    const BatchLimits& limits, std::vector<Scorer*> scorers,
    std::function<void(int, const absl::Status&)> on_device_lost) {
  std::vector<PackedBuffer> buffers;
  for (int buffer = 0; buffer < limits.buffers; ++buffer) {
    ASSIGN_OR_RETURN(PackedBuffer allocated,
                     scorers.front()->AllocatePackedBuffer(limits.buffer_bytes));
    buffers.push_back(std::move(allocated));
  }
  return std::unique_ptr<Batcher>(
      new Batcher(limits, std::move(scorers), std::move(buffers), std::move(on_device_lost)));
}

Batcher::Batcher(const BatchLimits& limits, std::vector<Scorer*> scorers,
                 std::vector<PackedBuffer> buffers,
                 std::function<void(int, const absl::Status&)> on_device_lost)
    : scorers_(std::move(scorers)),
      buffers_(std::move(buffers)),
      on_device_lost_(std::move(on_device_lost)),
      max_multiply_adds_on_submitter_(
          static_cast<uint64_t>(scorers_.front()->multiply_adds_per_second() *
                                absl::ToDoubleSeconds(kLongestOnSubmitter))),
      copy_threads_(limits.copy_threads),
      copy_piece_bytes_(limits.copy_piece_bytes),
      queue_(limits,
             [scorer = scorers_.front()](ElementType type, uint32_t dim) {
               return scorer->RowPitchBytes(type, dim);
             }),
      lost_(scorers_.size(), false) {
  for (size_t scorer = 0; scorer < scorers_.size(); ++scorer) {
    idle_.insert(idle_.end(), scorers_[scorer]->concurrency(), static_cast<int>(scorer));
  }
  const size_t workers = idle_.size() + 1 + copy_threads_;
  for (size_t worker = 0; worker < workers; ++worker) {
    workers_.emplace_back([this] { RunWorker(); });
  }
  // The first call finds them waiting, as every other does.
  MutexLock lock(&mutex_);
  while (started_workers_ < workers) started_.Wait(&mutex_);
}

Batcher::~Batcher() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& worker : workers_) worker.join();
}

Batcher::LaneId Batcher::AddLane() {
  MutexLock lock(&mutex_);
  return queue_.AddLane();
}

void Batcher::RemoveLane(LaneId lane) {
  std::vector<std::shared_ptr<Work>> dropped;  // Freed after the lock: a message may be large.
  MutexLock lock(&mutex_);
  dropped = queue_.RemoveLane(lane);
}

void Batcher::Submit(LaneId lane, std::shared_ptr<Work> work) {
  std::vector<CopyTask> tasks;
  absl::Status lost;
  {
    MutexLock lock(&mutex_);
    lost = all_lost_;
    if (lost.ok()) {
      queue_.Push(lane, work);  // A copy: a dropped message is freed after the lock.
      tasks = FillLocked();
    }
  }
  if (!lost.ok()) return work->recipient->OnFailed(lost);
  work.reset();
  if (Copy(std::move(tasks))) ScoreOrWake();
}

void Batcher::ReleaseResults(LaneId lane, size_t bytes) {
  MutexLock lock(&mutex_);
  queue_.ReleaseResults(lane, bytes);
  if (queue_.CanFill()) changed_.NotifyOne();
}

absl::Status Batcher::AllLost() const {
  MutexLock lock(&mutex_);
  return all_lost_;
}

BatcherCounters Batcher::counters() const {
  MutexLock lock(&mutex_);
  return counters_;
}

size_t Batcher::lanes() const {
  MutexLock lock(&mutex_);
  return queue_.lanes();
}

bool Batcher::TakeLocked(uint64_t max_multiply_adds, Batch** batch, int* scorer) {
  if (!CanTakeLocked()) return false;
  *batch = queue_.Take(absl::Now(), max_multiply_adds);
  if (*batch == nullptr) return false;
  if (!all_lost_.ok()) {
    *scorer = kNoScorer;  // What still rides in a batch is taken to be failed.
    return true;
  }
  *scorer = idle_.back();
  idle_.pop_back();
  return true;
}

void Batcher::WakeIfWorkLocked() {
  if (queue_.CanFill() || (CanTakeLocked() && queue_.HasBatch())) changed_.NotifyOne();
}

void Batcher::ScoreOrWake() {
  Batch* batch = nullptr;
  int scorer = 0;
  {
    MutexLock lock(&mutex_);
    if (submitter_scores_ || !TakeLocked(max_multiply_adds_on_submitter_, &batch, &scorer)) {
      return WakeIfWorkLocked();
    }
    submitter_scores_ = true;
    WakeIfWorkLocked();
  }
  ScoreBatch(batch, scorer);
  MutexLock lock(&mutex_);
  submitter_scores_ = false;
}

void Batcher::RunWorker() {
  mutex_.Lock();
  ++started_workers_;  // Until the lock is let go for the first time, which is to wait.
  started_.NotifyOne();
  while (!stopping_) {
    Batch* batch = nullptr;
    int scorer = 0;
    if (TakeLocked(kAny, &batch, &scorer)) {
      WakeIfWorkLocked();  // There may be a further batch, or room that this one left.
      mutex_.Unlock();
      ScoreBatch(batch, scorer);
      mutex_.Lock();
      continue;
    }
    if (!copies_.empty()) {
      CopyTask task = std::move(copies_.front());
      copies_.pop_front();
      ++copying_;
      mutex_.Unlock();
      CopyOne(task);
      task = CopyTask();  // It may be the last to hold its message.
      mutex_.Lock();
      --copying_;
      continue;
    }
    if (std::vector<CopyTask> tasks = FillLocked(); !tasks.empty()) {
      mutex_.Unlock();
      Copy(std::move(tasks));
      mutex_.Lock();
      continue;
    }
    if (CanTakeLocked() && queue_.HasReady()) continue;  // Filling closed it.
    changed_.WaitUntil(&mutex_, idle_.empty() ? absl::InfiniteFuture() : queue_.NextWake());
  }
  mutex_.Unlock();
}

std::vector<CopyTask> Batcher::FillLocked() {
  std::vector<CopyTask> tasks = queue_.Fill(absl::Now());
  // What it closed may have been waiting only for more: others take it while this thread copies.
  if (!idle_.empty() && queue_.HasReady()) changed_.NotifyOne();
  return tasks;
}

bool Batcher::Copy(std::vector<CopyTask> tasks) {
  if (copy_threads_ > 0) tasks = CutCopies(std::move(tasks), copy_piece_bytes_);
  if (copy_threads_ > 0 && tasks.size() > 1) return CopyShared(std::move(tasks));
  bool batch_copied = false;
  for (const CopyTask& task : tasks) {
    batch_copied = CopyOne(task);
    // The last one's batch is the caller's to see to.
    if (batch_copied && &task != &tasks.back()) {
      MutexLock lock(&mutex_);
      if (CanTakeLocked()) changed_.NotifyOne();
    }
  }
  return batch_copied;
}

bool Batcher::CopyShared(std::vector<CopyTask> tasks) {
  CopyTask task = std::move(tasks.front());
  {
    MutexLock lock(&mutex_);
    ++copying_;
    for (size_t i = 1; i < tasks.size(); ++i) copies_.push_back(std::move(tasks[i]));
    const int helpers = std::min(static_cast<int>(tasks.size()) - 1, copy_threads_ + 1 - copying_);
    for (int i = 0; i < helpers; ++i) changed_.NotifyOne();
  }
  while (true) {
    const bool batch_copied = CopyOne(task);
    task = CopyTask();
    MutexLock lock(&mutex_);
    if (copies_.empty()) {
      --copying_;
      return batch_copied;
    }
    if (batch_copied && CanTakeLocked()) changed_.NotifyOne();
    task = std::move(copies_.front());
    copies_.pop_front();
  }
}

bool Batcher::CopyOne(const CopyTask& task) {
  Work& work = *task.placement.work;
  const absl::Time start = absl::Now();
  const bool wanted = !work.recipient->gone();
  if (wanted) CopyRows(task);
  const absl::Duration pack = absl::Now() - start;
  const bool whole =
      work.units_to_copy.fetch_sub(task.placement.unit_count) == task.placement.unit_count;
  // Before the batch may start: scoring it could otherwise end the call first.
  if (whole) {
    work.message = MessageView();
    work.message_owner.reset();
    work.recipient->OnCopied();
  }
  MutexLock lock(&mutex_);
  if (wanted) {
    counters_.embedding_bytes_copied += task.placement.row_count() * work.chunk.row_bytes;
  }
  queue_.Copied(task, pack);
  return task.batch->units_to_copy == 0;
}

void Batcher::CopyRows(const CopyTask& task) const {
  const Placement& placement = task.placement;
  const DocumentChunk& chunk = placement.work->chunk;
  placement.work->message.CopyRows(chunk.data_offset + placement.first_row() * chunk.row_bytes,
                                   chunk.row_bytes, placement.row_count(), placement.pitch_bytes,
                                   buffers_[task.batch->buffer].data() + placement.buffer_offset);
}

void Batcher::ScoreBatch(Batch* batch, int scorer) {
  const absl::Time start = absl::Now();
  const std::byte* const buffer = buffers_[batch->buffer].data();
  QueryGroups groups(*batch, buffer);
  absl::StatusOr<ScoreTimings> timings = ScoreTimings();
  if (scorer == kNoScorer) {
    timings = AllLost();
  } else if (groups.document_count() > 0) {
    timings =
        scorers_[scorer]->Score({absl::MakeConstSpan(buffer, batch->used_bytes), groups.groups()});
  }
  std::vector<Placement> keep_alive;  // What `groups` points to, beyond the batch's release.
  const absl::Duration pack = batch->pack;
  {
    MutexLock lock(&mutex_);
    keep_alive = std::move(batch->placements);
    queue_.Release(batch);
    const bool lost = scorer == kNoScorer || lost_[scorer] || absl::IsUnavailable(timings.status());
    if (!lost) idle_.push_back(scorer);
    ++counters_.batches;
    counters_.groups += groups.groups().size();
    if (timings.ok()) counters_.documents += groups.document_count();
    WakeIfWorkLocked();  // The next batch, or the freed buffer; this thread hands out scores.
  }
  if (scorer != kNoScorer && absl::IsUnavailable(timings.status())) {
    LoseDevice(scorer, timings.status());
  }
  ForEachRecipient(groups.scored(),
                   [&](Recipient& recipient, absl::Span<const ScoredDocuments> scored) {
                     if (!timings.ok()) return recipient.OnFailed(timings.status());
                     const absl::Duration queue = LongestWait(scored, start) - pack;
                     recipient.OnScored(scored, {std::max(queue, absl::ZeroDuration()), pack,
                                                 timings->upload, timings->compute});
                   });
}

void Batcher::LoseDevice(int scorer, const absl::Status& status) {
  std::vector<std::shared_ptr<Work>> dropped;
  bool first = false;
  {
    MutexLock lock(&mutex_);
    first = !lost_[scorer];
    lost_[scorer] = true;
    idle_.erase(std::remove(idle_.begin(), idle_.end(), scorer), idle_.end());
    if (std::find(lost_.begin(), lost_.end(), false) == lost_.end()) {
      all_lost_ = status;
      dropped = queue_.RemoveAll();
      changed_.NotifyAll();
    }
  }
  if (first) on_device_lost_(scorer, status);
  for (const std::shared_ptr<Work>& work : dropped) work->recipient->OnFailed(status);
}

}  // namespace maxsimd
