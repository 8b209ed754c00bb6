// The contract's rules over a parsed request, each applied by itself: everything that is wrong with
// it, of which the decoder may report any one.
#ifndef MAXSIMD_TESTS_SERVER_CODEC_NAIVE_VALIDATION_H_
#define MAXSIMD_TESTS_SERVER_CODEC_NAIVE_VALIDATION_H_

#include <set>
#include <string>

#include "maxsimd/v1/rerank.pb.h"
#include "server/codec/limits.h"

namespace maxsimd {

struct Verdict {
  std::set<std::string> invalid;   // Last components of fields' paths.
  std::set<std::string> exceeded;  // Limits' names.

  bool ok() const { return invalid.empty() && exceeded.empty(); }
};

Verdict JudgeQuery(const v1::Query& query, const v1::RerankOptions& options, const Limits& limits);

// `query` must be a valid one's tokens.
Verdict JudgeDocuments(const v1::Documents& documents, const v1::TokenMatrix& query,
                       const Limits& limits);

// Bytes of one element; 0 where the type is none.
size_t ElementBytesOf(v1::ElementType type);

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_SERVER_CODEC_NAIVE_VALIDATION_H_
