#include "server/batching/batch_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace maxsimd {
namespace {

// A sixteenth of a batch: up to sixteen busy lanes ride in every batch, and a turn is still large
// against the bookkeeping of one.
constexpr uint64_t kTurnsPerBatch = 16;

bool IsCopied(const std::unique_ptr<Batch>& batch) {
  return batch->units_to_copy == 0;
}

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<CopyTask> CutCopies(std::vector<CopyTask> tasks, size_t piece_bytes) {
  std::vector<CopyTask> pieces;
  for (CopyTask& task : tasks) {
    const std::vector<Unit>& units = task.placement.work->chunk.units;
    Placement rest = std::move(task.placement);
    while (rest.row_count() * rest.pitch_bytes > piece_bytes && rest.unit_count > 1) {
      Placement piece = rest;
      piece.unit_count = 0;
      uint64_t end_row = rest.first_row();
      do {
        const Unit& unit = units[piece.first_unit + piece.unit_count++];
        end_row = unit.first_row + unit.row_count;
      } while ((end_row - rest.first_row()) * rest.pitch_bytes < piece_bytes &&
               piece.unit_count < rest.unit_count);
      if (piece.unit_count == rest.unit_count) break;
      rest.first_unit += piece.unit_count;
      rest.unit_count -= piece.unit_count;
      rest.buffer_offset = piece.buffer_end();
      pieces.push_back({task.batch, std::move(piece)});
    }
    pieces.push_back({task.batch, std::move(rest)});
  }
  return pieces;
}

uint64_t Placement::row_count() const {
  const Unit& last = work->chunk.units[first_unit + unit_count - 1];
  return last.first_row + last.row_count - first_row();
}

absl::Span<const uint32_t> Placement::documents() const {
  const Unit& first = work->chunk.units[first_unit];
  const Unit& last = work->chunk.units[first_unit + unit_count - 1];
  return absl::MakeConstSpan(work->chunk.order)
      .subspan(first.first, last.first + last.count - first.first);
}

size_t Placement::result_bytes() const {
  size_t sum = 0;
  for (size_t unit = first_unit; unit < first_unit + unit_count; ++unit) {
    sum += work->chunk.units[unit].result_bytes;
  }
  return sum;
}

BatchQueue::BatchQueue(const BatchLimits& limits, PitchOf pitch_of)
    : limits_(limits),
      pitch_of_(std::move(pitch_of)),
      quantum_(std::max<uint64_t>(1, limits.max_multiply_adds / kTurnsPerBatch)) {
  for (int buffer = limits.buffers - 1; buffer >= 0; --buffer) free_buffers_.push_back(buffer);
}

BatchQueue::LaneId BatchQueue::AddLane() {
  lanes_.emplace(next_lane_, Lane());
  return next_lane_++;
}

std::vector<std::shared_ptr<Work>> BatchQueue::RemoveLane(LaneId id) {
  std::vector<std::shared_ptr<Work>> dropped;
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return dropped;
  Lane& lane = found->second;
  for (std::shared_ptr<Work>& work : lane.waiting) {
    waiting_units_ -= work->chunk.units.size();
    dropped.push_back(std::move(work));
  }
  waiting_units_ += lane.next_unit;  // Of the front one these were placed before.
  if (lane.in_turn) {
    if (turn_.front() == id) front_charged_ = false;
    turn_.erase(std::find(turn_.begin(), turn_.end(), id));
  }
  lanes_.erase(found);
  return dropped;
}

std::vector<std::shared_ptr<Work>> BatchQueue::RemoveAll() {
  std::vector<LaneId> ids;
  for (const auto& [id, lane] : lanes_) ids.push_back(id);
  std::vector<std::shared_ptr<Work>> dropped;
  for (const LaneId id : ids) {
    for (std::shared_ptr<Work>& work : RemoveLane(id)) dropped.push_back(std::move(work));
  }
  if (open_ != nullptr) CloseOpenBatch();
  return dropped;
}

void BatchQueue::Push(LaneId id, std::shared_ptr<Work> work) {
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return;  // The call ended meanwhile.
  work->units_to_copy = work->chunk.units.size();
  waiting_units_ += work->chunk.units.size();
  found->second.waiting.push_back(std::move(work));
  JoinTurn(id, found->second);
}

void BatchQueue::ReleaseResults(LaneId id, size_t bytes) {
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return;
  found->second.result_bytes -= std::min(bytes, found->second.result_bytes);
  JoinTurn(id, found->second);
}

std::vector<CopyTask> BatchQueue::Fill(absl::Time now) {
  std::vector<CopyTask> tasks;
  size_t passed = 0;  // Lanes in a row that could not afford their next unit.
  while (!turn_.empty() && OpenBatch(now) != nullptr) {
    Lane& lane = lanes_.at(turn_.front());
    if (!front_charged_) {
      lane.deficit += quantum_;
      front_charged_ = true;
    }
    const size_t waiting_before = waiting_units_;
    if (!ServeLane(lane, tasks)) {
      CloseOpenBatch();  // Full; the lane keeps what is left of its turn.
      passed = 0;
      continue;
    }
    const LaneId id = turn_.front();
    turn_.pop_front();
    front_charged_ = false;
    lane.in_turn = false;
    if (!MayPlace(lane)) lane.deficit = 0;  // An idle lane saves up nothing.
    JoinTurn(id, lane);
    passed = waiting_units_ < waiting_before ? 0 : passed + 1;
    if (passed > 0 && passed == turn_.size()) {
      SkipRounds();
      passed = 0;
    }
  }
  return tasks;
}

void BatchQueue::SkipRounds() {
  uint64_t rounds = std::numeric_limits<uint64_t>::max();  // Until the first can afford its unit.
  for (const LaneId id : turn_) {
    const Lane& lane = lanes_.at(id);
    const uint64_t missing =
        lane.waiting.front()->chunk.units[lane.next_unit].multiply_adds - lane.deficit;
    rounds = std::min(rounds, (missing + quantum_ - 1) / quantum_);
  }
  for (const LaneId id : turn_) lanes_.at(id).deficit += (rounds - 1) * quantum_;
}

bool BatchQueue::ServeLane(Lane& lane, std::vector<CopyTask>& tasks) {
  while (MayPlace(lane)) {
    const Work& work = *lane.waiting.front();
    const Unit& unit = work.chunk.units[lane.next_unit];
    if (unit.multiply_adds > lane.deficit) return true;
    const size_t pitch = pitch_of_(work.query->element_type, work.query->dim);
    if (!Fits(unit, pitch)) return false;
    Place(lane, pitch, tasks);
  }
  return true;
}

void BatchQueue::Place(Lane& lane, size_t pitch, std::vector<CopyTask>& tasks) {
  const std::shared_ptr<Work>& work = lane.waiting.front();
  const Unit& unit = work->chunk.units[lane.next_unit];
  Batch& batch = *open_;
  const size_t offset = RoundUp(batch.used_bytes, pitch);

  Placement* last =
      tasks.empty() || tasks.back().batch != &batch ? nullptr : &tasks.back().placement;
  if (last != nullptr && last->work == work &&
      last->first_unit + last->unit_count == lane.next_unit &&
      last->first_row() + last->row_count() == unit.first_row && last->buffer_end() == offset) {
    ++last->unit_count;
    ++batch.placements.back().unit_count;
  } else {
    batch.placements.push_back({work, lane.next_unit, 1, offset, pitch});
    tasks.push_back({&batch, batch.placements.back()});
  }
  batch.used_bytes = offset + unit.row_count * pitch;
  batch.tokens += unit.row_count;
  batch.multiply_adds += unit.multiply_adds;
  batch.result_bytes += unit.result_bytes;
  ++batch.units_to_copy;

  lane.deficit -= unit.multiply_adds;
  lane.result_bytes += unit.result_bytes;
  --waiting_units_;
  if (++lane.next_unit == work->chunk.units.size()) {
    lane.waiting.pop_front();
    lane.next_unit = 0;
  }
}

void BatchQueue::Copied(const CopyTask& task, absl::Duration pack) {
  task.batch->units_to_copy -= task.placement.unit_count;
  task.batch->pack += pack;
}

Batch* BatchQueue::Take(absl::Time now, uint64_t max_multiply_adds) {
  if (!HasReady() && now >= NextWake()) CloseOpenBatch();
  const auto ready = std::find_if(closed_.begin(), closed_.end(), IsCopied);
  if (ready == closed_.end() || (*ready)->multiply_adds > max_multiply_adds) return nullptr;
  scoring_.splice(scoring_.end(), closed_, ready);
  return scoring_.back().get();
}

bool BatchQueue::HasReady() const {
  return std::any_of(closed_.begin(), closed_.end(), IsCopied);
}

void BatchQueue::Release(Batch* batch) {
  free_buffers_.push_back(batch->buffer);
  scoring_.remove_if([batch](const std::unique_ptr<Batch>& owned) { return owned.get() == batch; });
}

absl::Time BatchQueue::NextWake() const {
  if (open_ == nullptr || open_->placements.empty()) return absl::InfiniteFuture();
  return open_->opened + limits_.max_delay;
}

bool BatchQueue::CanFill() const {
  return !turn_.empty() && (open_ != nullptr || !free_buffers_.empty());
}

bool BatchQueue::MayPlace(const Lane& lane) const {
  if (lane.waiting.empty()) return false;
  const size_t bytes = lane.waiting.front()->chunk.units[lane.next_unit].result_bytes;
  return lane.result_bytes == 0 || lane.result_bytes + bytes <= limits_.max_lane_result_bytes;
}

bool BatchQueue::Fits(const Unit& unit, size_t pitch) const {
  const Batch& batch = *open_;
  if (batch.placements.empty()) return true;  // Any legal unit fits an empty buffer.
  return RoundUp(batch.used_bytes, pitch) + unit.row_count * pitch <= limits_.buffer_bytes &&
         batch.tokens + unit.row_count <= limits_.max_tokens &&
         batch.multiply_adds + unit.multiply_adds <= limits_.max_multiply_adds &&
         batch.result_bytes + unit.result_bytes <= limits_.max_result_bytes;
}

Batch* BatchQueue::OpenBatch(absl::Time now) {
  if (open_ == nullptr && !free_buffers_.empty()) {
    open_ = std::make_unique<Batch>();
    open_->buffer = free_buffers_.back();
    open_->opened = now;
    free_buffers_.pop_back();
  }
  return open_.get();
}

void BatchQueue::CloseOpenBatch() {
  closed_.push_back(std::move(open_));
}

void BatchQueue::JoinTurn(LaneId id, Lane& lane) {
  if (lane.in_turn || !MayPlace(lane)) return;
  lane.in_turn = true;
  turn_.push_back(id);
}

}  // namespace maxsimd
