#include "server/rpc/top_k.h"

#include <algorithm>
#include <utility>

namespace maxsimd {

void TopK::Add(uint32_t index, const DocumentScore& score, absl::string_view id,
               absl::Span<const TokenMatch> matches) {
  Result result{index, score, {}, {}};
  if (heap_.size() == k_) {
    if (k_ == 0 || !Better(result, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), Better);
    heap_.pop_back();
  }
  result.id.assign(id.data(), id.size());
  if (score.status == DocumentStatus::kScored)
    result.matches.assign(matches.begin(), matches.end());
  heap_.push_back(std::move(result));
  std::push_heap(heap_.begin(), heap_.end(), Better);
}

std::vector<TopK::Result> TopK::Take() {
  std::sort_heap(heap_.begin(), heap_.end(), Better);
  return std::exchange(heap_, {});
}

bool TopK::Better(const Result& a, const Result& b) {
  if (a.score.score != b.score.score) return a.score.score > b.score.score;
  return a.index < b.index;
}

}  // namespace maxsimd
