#include "server/rpc/admission.h"

namespace maxsimd {

Admission::Hold& Admission::Hold::operator=(Hold&& other) noexcept {
  if (this != &other) {
    Reset();
    admission_ = std::exchange(other.admission_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    multiply_adds_ = std::exchange(other.multiply_adds_, 0);
    lasting_ = other.lasting_;
  }
  return *this;
}

void Admission::Hold::Shrink(uint64_t bytes) {
  if (admission_ == nullptr || bytes >= bytes_) return;
  admission_->Release(std::exchange(bytes_, bytes) - bytes, 0, lasting_);
}

void Admission::Hold::Reset() {
  if (admission_ == nullptr) return;
  std::exchange(admission_, nullptr)
      ->Release(std::exchange(bytes_, 0), std::exchange(multiply_adds_, 0), lasting_);
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
  std::list<Waiter> granted;
  {
    MutexLock lock(&mutex_);
    for (auto waiter = waiting_.begin(); waiter != waiting_.end(); ++waiter) {
      if (waiter->id != id) continue;
      cancelled.splice(cancelled.end(), waiting_, waiter);
      break;
    }
    granted = TakeGrantable();  // Whoever stood behind it may fit.
  }
  CallGrants(std::move(granted));
  return !cancelled.empty();
}

Admission::Hold Admission::HoldNow(uint64_t bytes, uint64_t multiply_adds) {
  MutexLock lock(&mutex_);
  bytes_ += bytes;
  multiply_adds_ += multiply_adds;
  return Hold(this, bytes, multiply_adds);
}

bool Admission::TryHoldLasting(Hold& hold, uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > hold.bytes_) {
    const uint64_t more = bytes - hold.bytes_;
    if (lasting_bytes_ + more > limits_.max_bytes) return false;
    lasting_bytes_ += more;
    hold.bytes_ = bytes;
  }
  hold.admission_ = this;
  hold.lasting_ = true;
  return true;
}

Admission::Usage Admission::usage() const {
  MutexLock lock(&mutex_);
  return {calls_, bytes_ + lasting_bytes_, multiply_adds_, waiting_.size()};
}

bool Admission::HasWaiters() const {
  MutexLock lock(&mutex_);
  return !waiting_.empty();
}

bool Admission::HasRoom(uint64_t bytes) const {
  const bool fits = bytes_ == 0 || bytes_ + lasting_bytes_ + bytes <= limits_.max_bytes;
  return fits && multiply_adds_ <= limits_.max_multiply_adds;
}

void Admission::Release(uint64_t bytes, uint64_t multiply_adds, bool lasting) {
  std::list<Waiter> granted;
  {
    MutexLock lock(&mutex_);
    (lasting ? lasting_bytes_ : bytes_) -= bytes;
    multiply_adds_ -= multiply_adds;
    granted = TakeGrantable();
  }
  CallGrants(std::move(granted));
}

std::list<Admission::Waiter> Admission::TakeGrantable() {
  std::list<Waiter> granted;
  while (!waiting_.empty() && HasRoom(waiting_.front().bytes)) {
    bytes_ += waiting_.front().bytes;
    granted.splice(granted.end(), waiting_, waiting_.begin());
  }
  return granted;
}

void Admission::CallGrants(std::list<Waiter> granted) {
  for (Waiter& waiter : granted) waiter.grant(Hold(this, waiter.bytes, 0));
}

}  // namespace maxsimd
