#include "kernels/cuda/work_plan.h"

#include <algorithm>

namespace maxsimd::cuda {
namespace {

struct Document {
  uint32_t group;
  uint32_t index;
  uint32_t tiles;
};

std::vector<Document> LongestFirst(absl::Span<const PlannedGroup> groups) {
  std::vector<Document> documents;
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (uint32_t d = 0; d < groups[g].documents.size(); ++d) {
      const uint32_t length = groups[g].documents[d].length;
      if (length > 0) documents.push_back({g, d, CeilDiv(length, kTileRows)});
    }
  }
  const auto longer = [](const Document& a, const Document& b) { return a.tiles > b.tiles; };
  if (!std::is_sorted(documents.begin(), documents.end(), longer)) {
    std::stable_sort(documents.begin(), documents.end(), longer);
  }
  return documents;
}

// Chunks of the work list itself: the Hopper kernels' blocks each keep to one chunk instead.
uint32_t ListedChunks(const TileConfig& config, uint32_t query_tokens) {
  return config.kernel == Kernel::kGeneric ? CeilDiv(query_tokens, config.chunk_tokens) : 1;
}

class Planner {
 public:
  Planner(absl::Span<const PlannedGroup> groups, const TileConfig& config, WorkPlan* plan)
      : groups_(groups), config_(config), plan_(plan) {}

  // As `parts` items per chunk.
  void Add(const Document& document, uint32_t parts) {
    const PlannedGroup& group = groups_[document.group];
    const DocumentRows& rows = group.documents[document.index];
    const uint32_t listed_chunks = ListedChunks(config_, group.query_tokens);
    const uint32_t chunks = std::max(listed_chunks, config_.chunks);
    WorkItem item{};
    item.group = document.group;
    item.document = group.first_document + document.index;
    item.split = kNotSplit;
    item.siblings = static_cast<uint16_t>(parts * chunks);
    const uint32_t first_slot = plan_->slots;
    if (parts * chunks > 1) {
      item.split = static_cast<uint32_t>(plan_->splits.size());
      plan_->splits.push_back({first_slot, parts, chunks});
      plan_->slots += parts * chunks;
    }
    for (uint32_t part = 0; part < parts; ++part) {
      const uint32_t first = TileOf(document, part, parts) * kTileRows;
      const uint32_t end = std::min(TileOf(document, part + 1, parts) * kTileRows, rows.length);
      item.first_row = rows.first_row + first;
      item.rows = end - first;
      item.first_token = first;
      item.slot = first_slot + part * chunks;
      for (uint32_t chunk = 0; chunk < listed_chunks; ++chunk) {
        item.chunk = static_cast<uint16_t>(chunk);
        plan_->items.push_back(item);
      }
    }
  }

 private:
  static uint32_t TileOf(const Document& document, uint32_t part, uint32_t parts) {
    return static_cast<uint32_t>(uint64_t{document.tiles} * part / parts);
  }

  absl::Span<const PlannedGroup> groups_;
  const TileConfig& config_;
  WorkPlan* plan_;
};

}  // namespace

void PlanWork(absl::Span<const PlannedGroup> groups, const TileConfig& config, uint32_t block_slots,
              const PlanOptions& options, WorkPlan* plan) {
  plan->items.clear();
  plan->splits.clear();
  plan->slots = 0;
  const std::vector<Document> documents = LongestFirst(groups);
  const auto chunks_of = [&](const Document& document) {
    const uint32_t tokens = groups[document.group].query_tokens;
    return std::max(ListedChunks(config, tokens), config.chunks);
  };
  uint64_t tiles = 0;  // Once per chunk.
  for (const Document& document : documents)
    tiles += uint64_t{document.tiles} * chunks_of(document);
  const uint32_t steps_per_tile = std::max(1u, config.atoms / 2);
  const uint32_t cap = std::max(
      CeilDiv(options.min_part_steps, steps_per_tile),
      CeilDiv(static_cast<uint64_t>(options.share * static_cast<double>(tiles)), block_slots));
  Planner planner(groups, config, plan);
  for (const Document& document : documents) {
    const uint32_t parts =
        std::min(CeilDiv(document.tiles, cap), kMaxItemsOfDocument / chunks_of(document));
    planner.Add(document, parts);
  }
  const auto longer = [](const WorkItem& a, const WorkItem& b) { return a.rows > b.rows; };
  if (!plan->splits.empty()) std::stable_sort(plan->items.begin(), plan->items.end(), longer);
  const uint32_t lanes = std::min<uint64_t>(block_slots / config.chunks, plan->items.size());
  plan->blocks = lanes * config.chunks;
}

}  // namespace maxsimd::cuda
