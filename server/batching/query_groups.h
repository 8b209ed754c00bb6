// A batch that is about to be scored, as the Scorer wants it: one group per distinct query,
// whichever calls and chunks its documents came with, and the arrays that the scores go to.
//
// Queries are compared in full; their hash only finds the candidates.  Placements of calls that are
// gone are left out (their rows stay in the buffer, unread).
//
// Threads: one at a time.
#ifndef MAXSIMD_SERVER_BATCHING_QUERY_GROUPS_H_
#define MAXSIMD_SERVER_BATCHING_QUERY_GROUPS_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "kernels/scorer.h"
#include "server/batching/batch_queue.h"

namespace maxsimd {

class QueryGroups {
 public:
  // `buffer` is the packed buffer that the placements' rows have been copied to.
  QueryGroups(const Batch& batch, const std::byte* buffer);

  absl::Span<QueryGroup> groups() { return absl::MakeSpan(groups_); }
  size_t document_count() const { return scores_.size(); }

  // The scores, one entry per placement that was not left out; those of one call stand together.
  const std::vector<ScoredDocuments>& scored() const { return scored_; }

 private:
  struct Member {
    const Placement* placement;
    size_t group;
  };

  void AssignGroups(const Batch& batch);
  void ListDocuments();
  void BindArrays(const Batch& batch, const std::byte* buffer);

  std::vector<Member> members_;                        // By group, then by the batch's order.
  std::vector<std::shared_ptr<const Query>> queries_;  // Per group.
  std::vector<DocumentRows> documents_;                // All groups', back to back.
  std::vector<DocumentScore> scores_;
  std::vector<TokenMatch> matches_;
  std::vector<QueryGroup> groups_;
  std::vector<ScoredDocuments> scored_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_BATCHING_QUERY_GROUPS_H_
