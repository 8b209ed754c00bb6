// Results to wire format: RerankResponse messages of at most 1 MiB, as the contract promises.
//
// Written straight from the batch's output arrays, without an object per document.
//
// Threads: one encoder, one thread at a time.
#ifndef MAXSIMD_SERVER_CODEC_ENCODE_H_
#define MAXSIMD_SERVER_CODEC_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "kernels/scorer.h"

namespace maxsimd {

inline constexpr size_t kMaxResponseBytes = size_t{1} << 20;

// RerankSummary and its Timings.
struct Summary {
  uint64_t documents = 0;
  uint64_t document_tokens = 0;
  absl::Duration total;
  absl::Duration receive;
  absl::Duration queue;
  absl::Duration pack;
  absl::Duration upload;
  absl::Duration compute;
  uint32_t batches = 0;
};

class ResponseEncoder {
 public:
  // `matches` is written only for kScored documents.
  void Add(uint32_t index, const DocumentScore& score, absl::string_view id,
           absl::Span<const TokenMatch> matches);

  // Ends the last message with the summary, starting one where it doesn't fit or there is none.
  void AddSummary(const Summary& summary);

  bool empty() const { return messages_.empty(); }

  // The encoded messages so far, each a whole RerankResponse; leaves the encoder empty.
  std::vector<std::string> Take();

 private:
  std::string& MessageWithRoomFor(size_t bytes);

  std::vector<std::string> messages_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_ENCODE_H_
