#include "tests/testing/puppet_scorer.h"

#include <utility>

#include "kernels/reference/reference_scorer.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

void ScoreByOracle(QueryGroup& group) {
  const std::vector<ReferenceDocument> results = ReferenceScores(group);
  for (size_t d = 0; d < results.size(); ++d) {
    group.scores[d] = {static_cast<float>(results[d].score), results[d].status};
    if (!group.query.return_matches) continue;
    for (size_t i = 0; i < results[d].tokens.size(); ++i) {
      const ReferenceToken& token = results[d].tokens[i];
      group.matches[d * group.query.tokens + i] = {token.document_token,
                                                   static_cast<float>(token.similarity)};
    }
  }
}

}  // namespace

void PuppetScorer::Release(absl::Status status) {
  MutexLock lock(&mutex_);
  answers_.push_back(std::move(status));
  changed_.NotifyAll();
}

void PuppetScorer::ReleaseAll() {
  MutexLock lock(&mutex_);
  released_ = true;
  changed_.NotifyAll();
}

void PuppetScorer::WaitForCalls(size_t count) const {
  MutexLock lock(&mutex_);
  while (calls_.size() < count) changed_.Wait(&mutex_);
}

std::vector<PuppetScorer::Call> PuppetScorer::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

absl::StatusOr<ScoreTimings> PuppetScorer::Score(const ScoreBatch& batch) {
  Call call{batch.groups.size(), 0, batch.packed.size()};
  for (const QueryGroup& group : batch.groups) {
    RETURN_IF_ERROR(CheckGroup(group, *this));
    call.documents += group.documents.size();
  }
  absl::Status answer;
  {
    MutexLock lock(&mutex_);
    calls_.push_back(call);
    changed_.NotifyAll();
    while (answers_.empty() && !released_) changed_.Wait(&mutex_);
    if (!answers_.empty()) {
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
  }
  RETURN_IF_ERROR(answer);
  for (QueryGroup& group : batch.groups) ScoreByOracle(group);
  return ScoreTimings();
}

absl::StatusOr<PackedBuffer> PuppetScorer::AllocatePackedBuffer(size_t size_bytes) {
  return PackedBuffer(new std::byte[size_bytes](), size_bytes,
                      [](std::byte* data) { delete[] data; });
}

size_t PuppetScorer::RowPitchBytes(ElementType type, uint32_t dim) const {
  const size_t row_bytes = dim * ElementBytes(type);
  return (row_bytes + pitch_multiple_ - 1) / pitch_multiple_ * pitch_multiple_;
}

}  // namespace maxsimd
