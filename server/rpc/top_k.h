// The k best documents of a call: best first, at equal scores the lower index first.
//
// A bounded heap: what can no longer be among the k best is dropped at once, so that a stream of
// any length holds k results.  Scores are never NaN (a document without a finite score has
// -infinity), so the order is total.
//
// Threads: one at a time.
#ifndef MAXSIMD_SERVER_RPC_TOP_K_H_
#define MAXSIMD_SERVER_RPC_TOP_K_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "kernels/scorer.h"

namespace maxsimd {

class TopK {
 public:
  // What only some results have stands apart: a million without cost a pointer each.
  struct Details {
    std::string id;
    std::vector<TokenMatch> matches;
  };
  struct Result {
    uint32_t index = 0;
    DocumentScore score;
    std::unique_ptr<Details> details;  // Null where there are none.

    absl::string_view id() const {
      return details == nullptr ? absl::string_view() : absl::string_view(details->id);
    }
    absl::Span<const TokenMatch> matches() const {
      return details == nullptr ? absl::Span<const TokenMatch>() : details->matches;
    }
  };

  explicit TopK(uint32_t k) : k_(k) {}

  void Add(uint32_t index, const DocumentScore& score, absl::string_view id,
           absl::Span<const TokenMatch> matches);

  size_t size() const { return heap_.size(); }

  // What was kept, best first; leaves nothing.
  std::vector<Result> Take();

 private:
  static bool Better(const Result& a, const Result& b);

  uint32_t k_;
  std::vector<Result> heap_;  // The worst of the kept ones in front.
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_TOP_K_H_
