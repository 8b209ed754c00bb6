#include "kernels/cpu/cpu_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/resident_memory.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int kMaxThreads = 1024;

// Waking a helper and waiting for it costs about 10 us; a core does some 40 multiply-adds per ns.
// Below this many, the caller alone is done as soon.
constexpr double kWakeMultiplyAdds = 1.6e6;

// Items per thread: the last one to finish wastes at most an eighth of a thread's time.
constexpr int kItemsPerThread = 8;
constexpr double kMinItemMultiplyAdds = 2e5;

// Packed queries of a wave: one query of 4,096 tokens by dim 4,096, or thousands of short ones.
constexpr size_t kWaveUnits = size_t{16} << 20;

void ClearMaxima(size_t count, float* maxima, uint32_t* matches) {
  std::fill_n(maxima, count, kMinusInfinity);
  if (matches != nullptr) std::fill_n(matches, count, 0);
}

DocumentScore Aggregate(const QueryView& query, double divisor, const float* maxima) {
  double sum = 0;
  for (uint32_t i = 0; i < query.tokens; ++i) {
    const double weight = query.weights.empty() ? 1.0 : double{query.weights[i]};
    if (weight != 0) sum += weight * maxima[i];  // 0 even times an infinity.
  }
  const float score = static_cast<float>(sum / divisor);
  if (!std::isfinite(score)) return {kMinusInfinity, DocumentStatus::kNonFinite};
  return {score, DocumentStatus::kScored};
}

void Finish(QueryGroup& group, size_t document, double divisor, bool finite, const float* maxima,
            const uint32_t* matches) {
  if (!finite) {
    group.scores[document] = {kMinusInfinity, DocumentStatus::kNonFinite};
    return;
  }
  group.scores[document] = Aggregate(group.query, divisor, maxima);
  if (matches == nullptr) return;
  const size_t first = document * group.query.tokens;
  for (uint32_t i = 0; i < group.query.tokens; ++i) {
    group.matches[first + i] = {matches[i], maxima[i]};
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuScorer>> CpuScorer::Create(int threads, absl::string_view isa) {
  if (threads < 0 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: ", threads, " is not in [0, ", kMaxThreads, "]"));
  }
  if (threads == 0) threads = std::clamp<int>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  for (const CpuKernel* kernel : SupportedCpuKernels()) {
    if (isa.empty() || isa == kernel->isa) {
      return std::unique_ptr<CpuScorer>(new CpuScorer(*kernel, threads));
    }
  }
  return absl::FailedPreconditionError(absl::StrCat("isa: this machine or build has no ", isa));
}

CpuScorer::CpuScorer(const CpuKernel& kernel, int threads)
    : kernel_(kernel), threads_(threads), pool_(threads), workspaces_(threads) {
  multiply_adds_per_second_ = MeasureSpeed() * threads;
}

std::vector<std::string> CpuScorer::devices() const {
  return {absl::StrCat(CpuModelName(), ", ", kernel_.isa, ", ", threads_, " threads")};
}

absl::StatusOr<PackedBuffer> CpuScorer::AllocatePackedBuffer(size_t size_bytes) {
  return AllocateResidentMemory(size_bytes);
}

absl::StatusOr<ScoreTimings> CpuScorer::Score(const ScoreBatch& batch) {
  const absl::Time start = absl::Now();
  for (const QueryGroup& group : batch.groups) RETURN_IF_ERROR(CheckGroup(group, *this));
  MutexLock lock(&mutex_);
  for (size_t first = 0; first < batch.groups.size();) {
    const size_t count = PackWave(batch.groups.subspan(first));
    ScoreWave(batch.groups.subspan(first, count));
    first += count;
  }
  return ScoreTimings{.upload = absl::ZeroDuration(), .compute = absl::Now() - start};
}

// Packs the queries of the first groups, as many as a wave holds; at least one.
size_t CpuScorer::PackWave(absl::Span<const QueryGroup> groups) {
  packed_groups_.clear();
  size_t units = 0;
  for (const QueryGroup& group : groups) {
    const QueryView& query = group.query;
    const CpuArithmetic& arithmetic =
        ArithmeticFor(kernel_, static_cast<int>(query.element_type), query.normalize);
    const size_t needed = PackedQueryUnits(arithmetic, query.tokens, query.dim);
    if (!packed_groups_.empty() && units + needed > kWaveUnits) break;
    const bool is_mean = query.aggregation == Aggregation::kMean;
    packed_groups_.push_back({.arithmetic = &arithmetic,
                              .packed_query = units,
                              .divisor = is_mean ? WeightSum(query.weights, query.tokens) : 1});
    units += needed;
  }
  float* const packed = packed_queries_.Reserve(units);
  for (size_t g = 0; g < packed_groups_.size(); ++g) {
    const QueryView& query = groups[g].query;
    const CpuArithmetic& arithmetic = *packed_groups_[g].arithmetic;
    PackTask task;
    task.rows = query.data;
    task.tokens = query.tokens;
    task.dim = query.dim;
    task.normalize = query.normalize;
    task.scratch = workspaces_[0].scratch.Reserve(ScratchUnits(arithmetic, query.dim));
    task.packed = packed + packed_groups_[g].packed_query;
    arithmetic.pack_query[static_cast<int>(query.element_type)](task);
  }
  return packed_groups_.size();
}

void CpuScorer::ScoreWave(absl::Span<QueryGroup> groups) {
  double multiply_adds = 0;
  for (const QueryGroup& group : groups) multiply_adds += MultiplyAdds(group);
  if (pool_.threads() == 1 || multiply_adds < kWakeMultiplyAdds) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t d = 0; d < groups[g].documents.size(); ++d) {
        ScoreWholeDocument(groups[g], packed_groups_[g], d, workspaces_[0]);
      }
    }
    return;
  }
  CutWork(groups, 0,
          std::max(kMinItemMultiplyAdds, multiply_adds / (pool_.threads() * kItemsPerThread)),
          &items_);
  ReserveParts(groups);
  pool_.Run(items_.size(), [&](size_t item, int thread) { ScoreItem(groups, item, thread); });
  CombineParts(groups);
}

void CpuScorer::ReserveParts(absl::Span<const QueryGroup> groups) {
  parts_.assign(items_.size(), PartResult());
  size_t count = 0;
  for (size_t item = 0; item < items_.size(); ++item) {
    if (!items_[item].is_part) continue;
    const size_t group = items_[item].group;
    parts_[item].maxima = count;
    count += MaximaCount(*packed_groups_[group].arithmetic, groups[group].query.tokens);
  }
  part_maxima_.Reserve(count);
  part_matches_.Reserve(count);
}

void CpuScorer::ScoreItem(absl::Span<QueryGroup> groups, size_t item, int thread) {
  const WorkItem& work = items_[item];
  QueryGroup& group = groups[work.group];
  const PackedGroup& packed = packed_groups_[work.group];
  Workspace& workspace = workspaces_[thread];
  if (!work.is_part) {
    for (size_t d = 0; d < work.documents; ++d) {
      ScoreWholeDocument(group, packed, work.first_document + d, workspace);
    }
    return;
  }
  float* const scratch =
      workspace.scratch.Reserve(ScratchUnits(*packed.arithmetic, group.query.dim));
  PartResult& part = parts_[item];
  part.finite =
      FindMaxima(group, packed, work.first_document, work.first_token, work.tokens, scratch,
                 part_maxima_.data() + part.maxima,
                 group.query.return_matches ? part_matches_.data() + part.maxima : nullptr);
}

void CpuScorer::ScoreWholeDocument(QueryGroup& group, const PackedGroup& packed, size_t document,
                                   Workspace& workspace) {
  const uint32_t length = group.documents[document].length;
  if (length == 0) {
    group.scores[document] = {kMinusInfinity, DocumentStatus::kEmpty};
    return;
  }
  const size_t count = MaximaCount(*packed.arithmetic, group.query.tokens);
  float* const scratch =
      workspace.scratch.Reserve(ScratchUnits(*packed.arithmetic, group.query.dim));
  float* const maxima = workspace.maxima.Reserve(count);
  uint32_t* const matches = group.query.return_matches ? workspace.matches.Reserve(count) : nullptr;
  const bool finite = FindMaxima(group, packed, document, 0, length, scratch, maxima, matches);
  Finish(group, document, packed.divisor, finite, maxima, matches);
}

bool CpuScorer::FindMaxima(const QueryGroup& group, const PackedGroup& packed, size_t document,
                           uint32_t first_token, uint32_t tokens, float* scratch, float* maxima,
                           uint32_t* matches) const {
  ClearMaxima(MaximaCount(*packed.arithmetic, group.query.tokens), maxima, matches);
  ScoreTask task;
  task.packed_query = packed_queries_.data() + packed.packed_query;
  task.query_tokens = group.query.tokens;
  task.dim = group.query.dim;
  task.normalize = group.query.normalize;
  task.rows =
      group.rows + (group.documents[document].first_row + first_token) * group.row_pitch_bytes;
  task.row_pitch_bytes = group.row_pitch_bytes;
  task.row_count = tokens;
  task.first_token = first_token;
  task.scratch = scratch;
  task.maxima = maxima;
  task.matches = matches;
  return packed.arithmetic->score_rows[static_cast<int>(group.element_type)](task);
}

// In row order, and only what is larger replaces: as one pass over all rows would.
void CpuScorer::CombineParts(absl::Span<QueryGroup> groups) {
  for (size_t item = 0; item < items_.size();) {
    const WorkItem& first = items_[item];
    if (!first.is_part) {
      ++item;
      continue;
    }
    QueryGroup& group = groups[first.group];
    float* const maxima = part_maxima_.data() + parts_[item].maxima;
    uint32_t* const matches =
        group.query.return_matches ? part_matches_.data() + parts_[item].maxima : nullptr;
    bool finite = parts_[item].finite;
    for (++item; item < items_.size() && items_[item].is_part && items_[item].first_token > 0;
         ++item) {
      finite &= parts_[item].finite;
      const size_t other = parts_[item].maxima;
      for (uint32_t i = 0; i < group.query.tokens; ++i) {
        if (!(part_maxima_.data()[other + i] > maxima[i])) continue;
        maxima[i] = part_maxima_.data()[other + i];
        if (matches != nullptr) matches[i] = part_matches_.data()[other + i];
      }
    }
    Finish(group, first.first_document, packed_groups_[first.group].divisor, finite, maxima,
           matches);
  }
}

// One thread's, on the common shape, over rows that stay in cache: about 1 ms.
double CpuScorer::MeasureSpeed() {
  constexpr uint32_t kDim = 128;
  constexpr uint32_t kRows = 256;
  const std::vector<float> rows(size_t{kRows} * kDim, 0.5f);
  const DocumentRows document{.length = kRows};
  DocumentScore score;
  QueryGroup group;
  group.query.tokens = 32;
  group.query.dim = kDim;
  group.query.data = reinterpret_cast<const std::byte*>(rows.data());
  group.rows = group.query.data;
  group.row_pitch_bytes = kDim * sizeof(float);
  group.row_count = kRows;
  group.documents = absl::MakeConstSpan(&document, 1);
  group.scores = absl::MakeSpan(&score, 1);
  const absl::Span<QueryGroup> groups = absl::MakeSpan(&group, 1);

  MutexLock lock(&mutex_);
  PackWave(groups);
  ScoreWholeDocument(group, packed_groups_[0], 0, workspaces_[0]);  // Touches the scratch.
  const absl::Time start = absl::Now();
  absl::Duration elapsed;
  double multiply_adds = 0;
  do {
    ScoreWholeDocument(group, packed_groups_[0], 0, workspaces_[0]);
    multiply_adds += MultiplyAdds(group);
    elapsed = absl::Now() - start;
  } while (elapsed < absl::Milliseconds(1));
  return multiply_adds / absl::ToDoubleSeconds(elapsed);
}

}  // namespace maxsimd
