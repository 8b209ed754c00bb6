// Batch forming: which waiting units of packing ride in which batch, and when a batch starts.
//
// A pure state machine: no threads, no clock (time is an argument), no copying, no scoring.
//
// Lanes: each call has one, a first-in-first-out queue of messages.  A batch takes units of the
// lanes in turn (deficit round robin, Shreedhar and Varghese, SIGCOMM 1995), measured in
// multiply-adds, so that a gigabyte stream doesn't hold up a hundred-document call.
//
// A batch: fills one packed buffer.  It is full when the next unit in turn fits no more, by bytes,
// tokens, multiply-adds or result bytes; a unit that is over a limit by itself rides alone.  It
// starts when it is full and a device is idle, or when a device is idle and `max_delay` has passed
// since its first unit.  So while the device is busy the next batch fills, and with the default
// delay of 0 a lone request never waits.
//
// Latency bound: once in the open batch, a unit waits for at most the batches ahead of it and
// max_delay; a lane that asks for less than its turn waits for at most one turn of every other
// lane.
//
// Results: a lane whose results aren't written away gets no further units beyond
// max_lane_result_bytes (a slow reader stalls only itself).
#ifndef MAXSIMD_SERVER_BATCHING_BATCH_QUEUE_H_
#define MAXSIMD_SERVER_BATCHING_BATCH_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"

#include "server/batching/work.h"

namespace maxsimd {

struct BatchLimits {
  int buffers = 3;
  size_t buffer_bytes = size_t{64} << 20;
  uint64_t max_tokens = uint64_t{1} << 20;
  uint64_t max_multiply_adds = uint64_t{1} << 30;
  // Held once per buffer, beside what has been encoded: small against the packed buffers.
  size_t max_result_bytes = size_t{8} << 20;
  size_t max_lane_result_bytes = size_t{4} << 20;
  absl::Duration max_delay;
  // Threads that only help to copy, beside those that submit and those that score.
  int copy_threads = 0;
  // What they share: some 0.1 ms of copying, several times what it takes to wake a thread for it.
  size_t copy_piece_bytes = size_t{1} << 20;
};

// Units of one message that lie back to back, in the message and in the packed buffer.
struct Placement {
  std::shared_ptr<Work> work;
  size_t first_unit = 0;
  size_t unit_count = 0;
  size_t buffer_offset = 0;  // A multiple of pitch_bytes.
  size_t pitch_bytes = 0;

  uint64_t first_row() const { return work->chunk.units[first_unit].first_row; }
  uint64_t row_count() const;
  size_t buffer_end() const { return buffer_offset + row_count() * pitch_bytes; }
  absl::Span<const uint32_t> documents() const;  // Positions in the message.
  size_t result_bytes() const;
};

struct Batch {
  int buffer = 0;
  std::vector<Placement> placements;
  size_t used_bytes = 0;
  uint64_t tokens = 0;
  uint64_t multiply_adds = 0;
  size_t result_bytes = 0;
  absl::Time opened;  // When its first unit was placed.
  size_t units_to_copy = 0;
  absl::Duration pack;  // Sum over those who copied.
};

// A placement to be copied now, and the batch it belongs to.
struct CopyTask {
  Batch* batch = nullptr;
  Placement placement;
};

// The same copies in pieces, each of which ends with the unit in which it reaches `piece_bytes`, so
// that several threads can share them.
std::vector<CopyTask> CutCopies(std::vector<CopyTask> tasks, size_t piece_bytes);

class BatchQueue {
 public:
  using LaneId = uint64_t;
  using PitchOf = std::function<size_t(ElementType, uint32_t dim)>;

  // `pitch_of` says how far apart the backend wants packed rows: Scorer::RowPitchBytes.
  BatchQueue(const BatchLimits& limits, PitchOf pitch_of);

  LaneId AddLane();

  // Drops what waits in the lane (not what rides in a batch) and returns it.
  std::vector<std::shared_ptr<Work>> RemoveLane(LaneId lane);

  // Drops every lane and returns what waits in them.  Nothing more will come, so the open batch is
  // closed, due or not.
  std::vector<std::shared_ptr<Work>> RemoveAll();

  // Queues a message's units; a message without units is not for here.
  void Push(LaneId lane, std::shared_ptr<Work> work);

  // Gives back what was counted for results that are written away (or dropped).
  void ReleaseResults(LaneId lane, size_t bytes);

  // Reserves room in the open batch for waiting units.  The caller copies each task's rows and then
  // calls Copied.
  std::vector<CopyTask> Fill(absl::Time now);

  void Copied(const CopyTask& task, absl::Duration pack);

  // For a device that is idle: the next batch that is ready to be scored, or null.  Closes the open
  // batch when it is due and no other is ready, so that a batch that is still being copied holds up
  // no later one.  The batch stays owned by the queue until Release.  One of more than
  // `max_multiply_adds` is left for a later call.
  Batch* Take(absl::Time now, uint64_t max_multiply_adds = std::numeric_limits<uint64_t>::max());

  // Whether a batch is full and copied: Take would return one whatever the time.
  bool HasReady() const;

  // The batch has been scored: its buffer is free again.
  void Release(Batch* batch);

  // When an idle device should call Take again if nothing else happens.
  absl::Time NextWake() const;

  // Whether Fill could place something: there is room and a lane that may use it.
  bool CanFill() const;

  // Whether there is a batch that Take might return, now or once it is copied or due.
  bool HasBatch() const { return HasReady() || NextWake() != absl::InfiniteFuture(); }

  size_t waiting_units() const { return waiting_units_; }
  size_t lanes() const { return lanes_.size(); }

 private:
  struct Lane {
    std::deque<std::shared_ptr<Work>> waiting;
    size_t next_unit = 0;  // Of waiting.front().
    uint64_t deficit = 0;  // Multiply-adds it may still place in this turn.
    size_t result_bytes = 0;
    bool in_turn = false;  // Whether it stands in turn_.
  };

  // Whether the lane's next unit is held back by nothing but its turn and room.
  bool MayPlace(const Lane& lane) const;
  bool Fits(const Unit& unit, size_t pitch) const;
  Batch* OpenBatch(absl::Time now);  // Null while every buffer is in use.
  void CloseOpenBatch();
  void JoinTurn(LaneId id, Lane& lane);
  // Places units of the lane whose turn it is; false when the open batch is full.
  bool ServeLane(Lane& lane, std::vector<CopyTask>& tasks);
  // After a round in which no lane could afford its unit: adds what all further such rounds would
  // (a unit of a million turns must not take a million rounds under the caller's lock).
  void SkipRounds();
  void Place(Lane& lane, size_t pitch, std::vector<CopyTask>& tasks);

  const BatchLimits limits_;
  const PitchOf pitch_of_;
  const uint64_t quantum_;  // Multiply-adds per turn.

  LaneId next_lane_ = 1;
  std::unordered_map<LaneId, Lane> lanes_;
  std::deque<LaneId> turn_;     // Lanes that have something they may place, in turn.
  bool front_charged_ = false;  // Whether turn_.front() has been given its turn's multiply-adds.
  size_t waiting_units_ = 0;

  std::vector<int> free_buffers_;
  std::unique_ptr<Batch> open_;
  std::list<std::unique_ptr<Batch>> closed_;  // First in, first out.
  std::list<std::unique_ptr<Batch>> scoring_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_BATCHING_BATCH_QUEUE_H_
