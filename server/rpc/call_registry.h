// The calls in progress, and the one thread that ends those that stand still.
//
// A timer per read would cost more than the read of a small call; instead each call remembers since
// when it waits, and all are looked at a few times per time-out.
//
// Threads: thread-safe.
#ifndef MAXSIMD_SERVER_RPC_CALL_REGISTRY_H_
#define MAXSIMD_SERVER_RPC_CALL_REGISTRY_H_

#include <cstddef>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "kernels/mutex.h"

namespace maxsimd {

class RerankCall;

class CallRegistry {
 public:
  // Calls are looked at every `tick`.
  explicit CallRegistry(absl::Duration tick);
  ~CallRegistry();

  // False, and not added, once new calls are refused.
  bool Add(const std::shared_ptr<RerankCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(RerankCall* call) ABSL_LOCKS_EXCLUDED(mutex_);

  void RefuseNewCalls() ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether every call had ended by `deadline`.
  bool WaitUntilEmpty(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  void AbortAll(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<std::shared_ptr<RerankCall>> All() ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(absl::Duration tick) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::unordered_map<RerankCall*, std::weak_ptr<RerankCall>> calls_ ABSL_GUARDED_BY(mutex_);
  bool refusing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_CALL_REGISTRY_H_
