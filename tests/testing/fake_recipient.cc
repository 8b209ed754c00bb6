#include "tests/testing/fake_recipient.h"

namespace maxsimd {

void FakeRecipient::WaitForScores(size_t count) const {
  MutexLock lock(&mutex_);
  while (scores_ < count) changed_.Wait(&mutex_);
}

void FakeRecipient::WaitForCopies(size_t count) const {
  MutexLock lock(&mutex_);
  while (copies_ < count) changed_.Wait(&mutex_);
}

void FakeRecipient::WaitForFailures(size_t count) const {
  MutexLock lock(&mutex_);
  while (failures_.size() < count) changed_.Wait(&mutex_);
}

std::map<uint64_t, FakeRecipient::Result> FakeRecipient::results() const {
  MutexLock lock(&mutex_);
  return results_;
}

size_t FakeRecipient::scores() const {
  MutexLock lock(&mutex_);
  return scores_;
}

size_t FakeRecipient::result_bytes() const {
  MutexLock lock(&mutex_);
  return result_bytes_;
}

size_t FakeRecipient::batches() const {
  MutexLock lock(&mutex_);
  return batches_;
}

size_t FakeRecipient::copies() const {
  MutexLock lock(&mutex_);
  return copies_;
}

std::vector<absl::Status> FakeRecipient::failures() const {
  MutexLock lock(&mutex_);
  return failures_;
}

void FakeRecipient::OnScored(absl::Span<const ScoredDocuments> scored,
                             const BatchTimings& /*timings*/) {
  MutexLock lock(&mutex_);
  ++batches_;
  for (const ScoredDocuments& part : scored) {
    const size_t matches_each = part.matches.size() / part.documents.size();
    for (size_t i = 0; i < part.documents.size(); ++i) {
      const auto matches = part.matches.subspan(i * matches_each, matches_each);
      results_[part.work->first_index + part.documents[i]] = {
          part.scores[i], std::vector<TokenMatch>(matches.begin(), matches.end())};
      ++scores_;
    }
    result_bytes_ += part.result_bytes;
  }
  changed_.NotifyAll();
}

void FakeRecipient::OnCopied() {
  {
    MutexLock lock(&mutex_);
    ++copies_;
    changed_.NotifyAll();
  }
  if (on_copied_) on_copied_();
}

void FakeRecipient::OnFailed(const absl::Status& status) {
  MutexLock lock(&mutex_);
  failures_.push_back(status);
  changed_.NotifyAll();
}

}  // namespace maxsimd
