// How `maxsimd-cli rerank` shows a ranking: as a table or as JSON, with texts and with which
// document token each query token matched.  Pure.
#ifndef MAXSIMD_CLIENT_CLI_RERANK_REPORT_H_
#define MAXSIMD_CLIENT_CLI_RERANK_REPORT_H_

#include <string>
#include <vector>

#include "client/cli/format.h"
#include "client/cli/input_files.h"
#include "client/cli/text_files.h"
#include "client/rerank_types.h"

namespace maxsimd {

struct RerankReport {
  const LoadedInput& loaded;
  uint64_t query_index = 0;
  RerankResult result;             // Best first.
  std::vector<std::string> texts;  // One per document, or none.
  TokenStrings query_tokens;
  TokenStrings document_tokens;
  bool explain = false;

  // With `columns` > 0 texts are cut so that lines fit.  Only the best document is explained.
  std::string AsTable(size_t columns) const;
  std::string AsJson() const;

 private:
  std::string ExplainBest() const;
  Json MatchesJson(const v1::ScoredDocument& document) const;
};

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_RERANK_REPORT_H_
