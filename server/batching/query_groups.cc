#include "server/batching/query_groups.h"

#include <algorithm>
#include <unordered_map>

namespace maxsimd {

QueryGroups::QueryGroups(const Batch& batch, const std::byte* buffer) {
  AssignGroups(batch);
  ListDocuments();
  BindArrays(batch, buffer);
}

void QueryGroups::AssignGroups(const Batch& batch) {
  std::unordered_multimap<uint64_t, size_t> by_hash;
  for (const Placement& placement : batch.placements) {
    if (placement.work->recipient->gone()) continue;
    const std::shared_ptr<const Query>& query = placement.work->query;
    const auto [first, last] = by_hash.equal_range(query->hash);
    const auto found = std::find_if(first, last, [&](const auto& candidate) {
      const std::shared_ptr<const Query>& other = queries_[candidate.second];
      return other == query || *other == *query;
    });
    size_t group = queries_.size();
    if (found != last) {
      group = found->second;
    } else {
      by_hash.emplace(query->hash, group);
      queries_.push_back(query);
    }
    members_.push_back({&placement, group});
  }
  std::stable_sort(members_.begin(), members_.end(),
                   [](const Member& a, const Member& b) { return a.group < b.group; });
}

void QueryGroups::ListDocuments() {
  size_t documents = 0;
  size_t matches = 0;
  for (const auto& [placement, group] : members_) {
    const size_t count = placement->documents().size();
    documents += count;
    if (queries_[group]->return_matches) matches += count * queries_[group]->tokens;
  }
  documents_.reserve(documents);
  for (const auto& [placement, group] : members_) {
    const uint64_t first_row = placement->buffer_offset / placement->pitch_bytes;
    for (const uint32_t document : placement->documents()) {
      const DocumentRows& rows = placement->work->chunk.documents[document];
      documents_.push_back({first_row + (rows.first_row - placement->first_row()), rows.length});
    }
  }
  scores_.resize(documents);
  matches_.resize(matches);
}

void QueryGroups::BindArrays(const Batch& batch, const std::byte* buffer) {
  groups_.reserve(queries_.size());
  scored_.reserve(members_.size());
  size_t document = 0;
  size_t match = 0;
  for (size_t member = 0; member < members_.size();) {
    const size_t index = members_[member].group;
    const size_t first_document = document;
    const size_t first_match = match;
    const size_t pitch = members_[member].placement->pitch_bytes;
    const size_t matches_each = queries_[index]->return_matches ? queries_[index]->tokens : 0;
    for (; member < members_.size() && members_[member].group == index; ++member) {
      const Placement& placement = *members_[member].placement;
      const size_t count = placement.documents().size();
      scored_.push_back({placement.work.get(), placement.documents(),
                         absl::MakeConstSpan(scores_).subspan(document, count),
                         absl::MakeConstSpan(matches_).subspan(match, count * matches_each),
                         placement.result_bytes()});
      document += count;
      match += count * matches_each;
    }
    QueryGroup& group = groups_.emplace_back();
    group.query = queries_[index]->view();
    group.element_type = queries_[index]->element_type;
    group.rows = buffer;
    group.row_pitch_bytes = pitch;
    group.row_count = batch.used_bytes / pitch;
    group.documents =
        absl::MakeConstSpan(documents_).subspan(first_document, document - first_document);
    group.scores = absl::MakeSpan(scores_).subspan(first_document, document - first_document);
    group.matches = absl::MakeSpan(matches_).subspan(first_match, match - first_match);
  }
  std::stable_sort(scored_.begin(), scored_.end(),
                   [](const ScoredDocuments& a, const ScoredDocuments& b) {
                     return a.work->recipient.get() < b.work->recipient.get();
                   });
}

}  // namespace maxsimd
