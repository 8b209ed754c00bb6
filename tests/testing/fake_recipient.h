// A call without gRPC: keeps what a Recipient is told, and lets a test wait for it.
//
// Threads: thread-safe.
#ifndef MAXSIMD_TESTS_TESTING_FAKE_RECIPIENT_H_
#define MAXSIMD_TESTS_TESTING_FAKE_RECIPIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "kernels/mutex.h"
#include "server/batching/work.h"

namespace maxsimd {

class FakeRecipient : public Recipient {
 public:
  struct Result {
    DocumentScore score;
    std::vector<TokenMatch> matches;
  };

  FakeRecipient() = default;
  // Runs within OnCopied: what it blocks on, the copying blocks on.
  explicit FakeRecipient(std::function<void()> on_copied) : on_copied_(std::move(on_copied)) {}

  void Go() { gone_ = true; }

  // Until `count` documents have been scored, messages copied, failures told.
  void WaitForScores(size_t count) const ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitForCopies(size_t count) const ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitForFailures(size_t count) const ABSL_LOCKS_EXCLUDED(mutex_);

  // By index in the call.
  std::map<uint64_t, Result> results() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of all results, those that came twice included.
  size_t scores() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t result_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t batches() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t copies() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<absl::Status> failures() const ABSL_LOCKS_EXCLUDED(mutex_);

  bool gone() const override { return gone_; }
  void OnScored(absl::Span<const ScoredDocuments> scored, const BatchTimings& timings) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCopied() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnFailed(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::function<void()> on_copied_;
  std::atomic<bool> gone_{false};

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::map<uint64_t, Result> results_ ABSL_GUARDED_BY(mutex_);
  size_t scores_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t result_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t batches_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t copies_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_FAKE_RECIPIENT_H_
