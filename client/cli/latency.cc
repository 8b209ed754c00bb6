#include "client/cli/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace maxsimd {

double Percentile(absl::Span<const double> sorted, double percent) {
  if (sorted.empty()) return 0;
  // 99.9 % of 1,000 is 999 and a rounding error: what is within one of a whole rank is that rank.
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()) - 1e-9);
  const double index = std::clamp(rank - 1, 0.0, static_cast<double>(sorted.size() - 1));
  return sorted[static_cast<size_t>(index)];
}

LatencySummary Summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = Percentile(values, 50),
          .p90 = Percentile(values, 90),
          .p99 = Percentile(values, 99),
          .p999 = Percentile(values, 99.9),
          .max = values.back()};
}

absl::Duration PoissonGap(double rate, double chance) {
  return absl::Seconds(-std::log1p(-chance) / rate);
}

void LoadRecord::Add(absl::Time due, absl::Time end, const std::string& error) {
  if (due < from_ || due >= until_) return;
  last_end_ = std::max(last_end_, end);
  if (!error.empty()) {
    ++errors_[error];
    return;
  }
  latencies_ms_.push_back(absl::ToDoubleMilliseconds(end - due));
}

uint64_t LoadRecord::failed() const {
  uint64_t failed = 0;
  for (const auto& [error, count] : errors_) failed += count;
  return failed;
}

absl::Duration LoadRecord::elapsed() const {
  return (until_ == absl::InfiniteFuture() ? last_end_ : std::max(last_end_, until_)) - from_;
}

}  // namespace maxsimd
