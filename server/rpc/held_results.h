// How many bytes the results take that a call with top_k holds until its last document is scored:
// what max_held_result_bytes limits.
//
// An upper bound, known before anything is scored: as if each held result were the largest that
// came so far of its kind (with tokens or without), since any of them may turn out to be among the
// k best.  For documents whose ids are equally long it is exact.
//
// Threads: one at a time.
#ifndef MAXSIMD_SERVER_RPC_HELD_RESULTS_H_
#define MAXSIMD_SERVER_RPC_HELD_RESULTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "server/codec/request.h"

namespace maxsimd {

class HeldResults {
 public:
  explicit HeldResults(uint32_t k) : k_(k) {}

  void Add(const Query& query, const DocumentChunk& documents) {
    for (const uint32_t document : documents.order) {
      scored_.Add(ResultBytes(query, documents.ids[document]));
    }
    for (const uint32_t document : documents.empty) {
      empty_.Add(EmptyResultBytes(documents.ids[document]));
    }
  }

  uint64_t bytes() const { return scored_.Bytes(k_) + empty_.Bytes(k_); }

 private:
  struct Kind {
    uint64_t count = 0;
    uint64_t largest = 0;

    void Add(size_t bytes) {
      ++count;
      largest = std::max<uint64_t>(largest, bytes);
    }
    uint64_t Bytes(uint32_t k) const { return std::min<uint64_t>(count, k) * largest; }
  };

  const uint32_t k_;
  Kind scored_;
  Kind empty_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_HELD_RESULTS_H_
