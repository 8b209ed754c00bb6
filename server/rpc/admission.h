// Admission: how many calls, bytes and multiply-adds the server holds at a time, whatever is sent.
//
// A message's size is unknown until it has been read, so the largest is reserved before each read
// and the surplus returned after it.  What finds no room waits, first come first served; a call
// whose first read waits too long is refused by its owner.  Multiply-adds are known only once a
// message has been decoded: while more than the budget of them wait to be scored, no further read
// is granted.
//
// What is held for the length of a call (its query, the results that top_k holds) is refused rather
// than waited for: it ends only with the call, and the call only with its next read.  For the same
// reason one read is granted even beside a budget full of such holds, if no other is outstanding:
// somebody always gets on.
//
// So the bytes held stay under max_bytes and one message, but for two bounded exceptions: a message
// longer than its limit is buffered by gRPC before it can be refused, and HoldNow never waits.
//
// Threads: thread-safe.  A grant is called without the lock held, on the thread that released the
// room; it must not block.
#ifndef MAXSIMD_SERVER_RPC_ADMISSION_H_
#define MAXSIMD_SERVER_RPC_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "kernels/mutex.h"

namespace maxsimd {

struct AdmissionLimits {
  size_t max_calls = 1024;
  uint64_t max_bytes = uint64_t{1} << 30;
  // Two of the largest messages: what a caller may have to wait for.
  uint64_t max_multiply_adds = 4'000'000'000'000;
};

class Admission {
 public:
  // Bytes and multiply-adds that are held; given back when it is destroyed.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Reset(); }

    // Gives the surplus back.
    void Shrink(uint64_t bytes);
    void Reset();
    uint64_t bytes() const { return bytes_; }

   private:
    friend class Admission;
    Hold(Admission* admission, uint64_t bytes, uint64_t multiply_adds)
        : admission_(admission), bytes_(bytes), multiply_adds_(multiply_adds) {}

    Admission* admission_ = nullptr;
    uint64_t bytes_ = 0;
    uint64_t multiply_adds_ = 0;
    bool lasting_ = false;  // Until the call's end.
  };

  using Grant = absl::AnyInvocable<void(Hold)>;
  using WaitId = uint64_t;

  struct Usage {
    size_t calls = 0;
    uint64_t bytes = 0;
    uint64_t multiply_adds = 0;
    size_t waiting = 0;
  };

  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // Whether there is a place for one more call; each true needs one LeaveCall.
  bool EnterCall() ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveCall() ABSL_LOCKS_EXCLUDED(mutex_);

  // Reserves room for a read.  Calls `grant` with it, before returning if there is room now, and
  // else when there is, unless CancelWait comes first.
  WaitId Reserve(uint64_t bytes, Grant grant) ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives up waiting.  True if `grant` has not been called and never will be.
  bool CancelWait(WaitId id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Holds what exists already: never waits, and may exceed the budget until it is released.
  Hold HoldNow(uint64_t bytes, uint64_t multiply_adds) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes `hold` one of `bytes` for the length of a call; false, and unchanged, if those of all
  // calls would then exceed the budget.  Only ever grows a hold, which grants nobody room, so that
  // it may be called under a call's lock.
  bool TryHoldLasting(Hold& hold, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  Usage usage() const ABSL_LOCKS_EXCLUDED(mutex_);

  bool HasWaiters() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    WaitId id;
    uint64_t bytes;
    Grant grant;
  };

  bool HasRoom(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The waiters at the front that there is room for, whose room is now held.
  std::list<Waiter> TakeGrantable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CallGrants(std::list<Waiter> granted) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(uint64_t bytes, uint64_t multiply_adds, bool lasting) ABSL_LOCKS_EXCLUDED(mutex_);

  const AdmissionLimits limits_;
  mutable Mutex mutex_;
  size_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Beside the lasting ones.
  uint64_t lasting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t multiply_adds_ ABSL_GUARDED_BY(mutex_) = 0;
  WaitId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::list<Waiter> waiting_ ABSL_GUARDED_BY(mutex_);  // First come, first served.
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_ADMISSION_H_
