#include "tests/testing/packing_scorer.h"

#include <cstdint>
#include <cstring>

namespace maxsimd {
namespace {

constexpr size_t kAlignment = 16;
constexpr auto kNanByte = std::byte{0xff};

}  // namespace

absl::StatusOr<ScoreTimings> PackingScorer::Score(const ScoreBatch& batch) {
  std::vector<size_t> offsets;
  size_t size = 0;
  for (const QueryGroup& group : batch.groups) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    size += reinterpret_cast<uintptr_t>(group.rows) % kAlignment;
    offsets.push_back(size);
    size += group.row_count * backend_->RowPitchBytes(group.element_type, group.query.dim);
  }
  std::vector<std::byte> packed(size + 1, kNanByte);
  std::vector<QueryGroup> groups(batch.groups.begin(), batch.groups.end());
  for (size_t g = 0; g < groups.size(); ++g) {
    QueryGroup& group = groups[g];
    const size_t row_bytes = group.row_pitch_bytes;
    group.row_pitch_bytes = backend_->RowPitchBytes(group.element_type, group.query.dim);
    std::byte* const to = packed.data() + offsets[g];
    for (uint64_t row = 0; row < group.row_count; ++row) {
      std::memcpy(to + row * group.row_pitch_bytes, group.rows + row * row_bytes, row_bytes);
    }
    group.rows = to;
  }
  return backend_->Score({packed, absl::MakeSpan(groups)});
}

}  // namespace maxsimd
