// Puts the results of one or several calls together, and finds out servers that answer wrongly.
// Pure.
//
// Without top_k: every document exactly once, in the order of the request.  With top_k: the best,
// best first; those of several calls are ranked anew, at equal scores the lower index first.
//
// Errors: Internal where an index is unknown or comes twice, a document is missing, or there is no
// summary: a call that ended OK must have all of them.
#ifndef MAXSIMD_CLIENT_RESULT_MERGER_H_
#define MAXSIMD_CLIENT_RESULT_MERGER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "client/rerank_types.h"

namespace maxsimd {

class ResultMerger {
 public:
  explicit ResultMerger(uint32_t top_k) : top_k_(top_k) {}

  // The results of a call over the `document_count` documents from `first_document` on; calls come
  // in the order of their documents.
  absl::Status Add(uint64_t first_document, uint64_t document_count,
                   std::vector<v1::ScoredDocument> documents,
                   const std::optional<v1::RerankSummary>& summary);

  RerankResult Take();

 private:
  const uint32_t top_k_;
  bool several_calls_ = false;
  RerankResult result_;
};

// Higher scores first, then lower indexes.  -infinity is the lowest.
bool RanksBefore(const v1::ScoredDocument& a, const v1::ScoredDocument& b);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_RESULT_MERGER_H_
