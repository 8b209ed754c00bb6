#include "client/result_merger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include <google/protobuf/util/time_util.h>

namespace maxsimd {
namespace {

absl::Status CheckIndexes(const std::vector<v1::ScoredDocument>& documents, uint64_t expected,
                          uint64_t document_count) {
  std::vector<bool> seen(document_count);
  for (const v1::ScoredDocument& document : documents) {
    if (document.index() >= document_count) {
      return absl::InternalError(absl::StrCat("the server returned document ", document.index(),
                                              ", but only ", document_count, " were sent"));
    }
    if (seen[document.index()]) {
      return absl::InternalError(
          absl::StrCat("the server returned document ", document.index(), " twice"));
    }
    seen[document.index()] = true;
  }
  if (documents.size() == expected) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the server returned ", documents.size(),
                                          " documents, but ", expected, " were to come"));
}

void AddDuration(const google::protobuf::Duration& more, google::protobuf::Duration* sum) {
  *sum = *sum + more;
}

void AddSummary(const v1::RerankSummary& more, v1::RerankSummary* sum) {
  sum->set_documents(sum->documents() + more.documents());
  sum->set_document_tokens(sum->document_tokens() + more.document_tokens());
  v1::Timings* timings = sum->mutable_timings();
  AddDuration(more.timings().total(), timings->mutable_total());
  AddDuration(more.timings().receive(), timings->mutable_receive());
  AddDuration(more.timings().queue(), timings->mutable_queue());
  AddDuration(more.timings().pack(), timings->mutable_pack());
  AddDuration(more.timings().upload(), timings->mutable_upload());
  AddDuration(more.timings().compute(), timings->mutable_compute());
  timings->set_batches(timings->batches() + more.timings().batches());
}

}  // namespace

bool RanksBefore(const v1::ScoredDocument& a, const v1::ScoredDocument& b) {
  if (a.score() != b.score()) return a.score() > b.score();
  return a.index() < b.index();
}

absl::Status ResultMerger::Add(uint64_t first_document, uint64_t document_count,
                               std::vector<v1::ScoredDocument> documents,
                               const std::optional<v1::RerankSummary>& summary) {
  const uint64_t expected =
      top_k_ == 0 ? document_count : std::min<uint64_t>(top_k_, document_count);
  if (absl::Status status = CheckIndexes(documents, expected, document_count); !status.ok()) {
    return status;
  }
  if (!summary.has_value()) {
    return absl::InternalError("the server ended the call without a summary");
  }
  several_calls_ = several_calls_ || !result_.documents.empty();
  if (top_k_ == 0) {
    std::sort(documents.begin(), documents.end(),
              [](const auto& a, const auto& b) { return a.index() < b.index(); });
  }
  for (v1::ScoredDocument& document : documents) {
    document.set_index(static_cast<uint32_t>(first_document + document.index()));
    result_.documents.push_back(std::move(document));
  }
  AddSummary(*summary, &result_.summary);
  return absl::OkStatus();
}

RerankResult ResultMerger::Take() {
  if (top_k_ > 0 && several_calls_) {
    std::sort(result_.documents.begin(), result_.documents.end(), RanksBefore);
    if (result_.documents.size() > top_k_) result_.documents.resize(top_k_);
  }
  return std::exchange(result_, RerankResult{});
}

}  // namespace maxsimd
