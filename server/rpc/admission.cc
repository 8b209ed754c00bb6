#include "server/rpc/admission.h"

namespace maxsimd {

Admission::Hold& Admission::Hold::operator=(Hold&& other) noexcept {
  if (this != &other) {
    Reset();
    admission_ = std::exchange(other.admission_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    multiply_adds_ = std::exchange(other.multiply_adds_, 0);
  }
  return *this;
}

void Admission::Hold::Resize(uint64_t bytes) {
  if (admission_ == nullptr) return;
  const int64_t change = static_cast<int64_t>(bytes) - static_cast<int64_t>(bytes_);
  bytes_ = bytes;
  admission_->Change(change, 0);
}

void Admission::Hold::Reset() {
  if (admission_ == nullptr) return;
  Admission* const admission = std::exchange(admission_, nullptr);
  admission->Change(-static_cast<int64_t>(std::exchange(bytes_, 0)),
                    -static_cast<int64_t>(std::exchange(multiply_adds_, 0)));
}

bool Admission::EnterCall() {
  MutexLock lock(&mutex_);
  if (calls_ >= limits_.max_calls) return false;
  ++calls_;
  return true;
}

void Admission::LeaveCall() {
  MutexLock lock(&mutex_);
  --calls_;
}

Admission::WaitId Admission::Reserve(uint64_t bytes, Grant grant) {
  WaitId id = 0;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    if (!waiting_.empty() || !HasRoom(bytes)) {
      waiting_.push_back({id, bytes, std::move(grant)});
      return id;
    }
    bytes_ += bytes;
  }
  grant(Hold(this, bytes, 0));
  return id;
}

bool Admission::CancelWait(WaitId id) {
  std::list<Waiter> cancelled;  // Destroyed after the lock: a grant owns its call.
  {
    MutexLock lock(&mutex_);
    for (auto waiter = waiting_.begin(); waiter != waiting_.end(); ++waiter) {
      if (waiter->id != id) continue;
      cancelled.splice(cancelled.end(), waiting_, waiter);
      break;
    }
  }
  if (cancelled.empty()) return false;
  Change(0, 0);  // Whoever stood behind it may fit.
  return true;
}

Admission::Hold Admission::HoldNow(uint64_t bytes, uint64_t multiply_adds) {
  MutexLock lock(&mutex_);
  bytes_ += bytes;
  multiply_adds_ += multiply_adds;
  return Hold(this, bytes, multiply_adds);
}

Admission::Usage Admission::usage() const {
  MutexLock lock(&mutex_);
  return {calls_, bytes_, multiply_adds_, waiting_.size()};
}

bool Admission::HasRoom(uint64_t bytes) const {
  return bytes_ + bytes <= limits_.max_bytes && multiply_adds_ <= limits_.max_multiply_adds;
}

void Admission::Change(int64_t bytes, int64_t multiply_adds) {
  std::list<Waiter> granted;
  {
    MutexLock lock(&mutex_);
    bytes_ += bytes;
    multiply_adds_ += multiply_adds;
    while (!waiting_.empty() && HasRoom(waiting_.front().bytes)) {
      bytes_ += waiting_.front().bytes;
      granted.splice(granted.end(), waiting_, waiting_.begin());
    }
  }
  for (Waiter& waiter : granted) waiter.grant(Hold(this, waiter.bytes, 0));
}

}  // namespace maxsimd
