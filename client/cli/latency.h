// What a load run measured, and the arithmetic over it.  Pure.
#ifndef MAXSIMD_CLIENT_CLI_LATENCY_H_
#define MAXSIMD_CLIENT_CLI_LATENCY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace maxsimd {

// The smallest value that at least `percent` of all values don't exceed (nearest rank), of values
// in ascending order; 0 where there are none.
double Percentile(absl::Span<const double> sorted, double percent);

struct LatencySummary {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

// Of values in any order.
LatencySummary Summarize(std::vector<double> values);

// Time to the next arrival of a Poisson process of `rate` a second; `chance` lies in [0, 1).
absl::Duration PoissonGap(double rate, double chance);

// Counts the calls that were due within [from, until), where `until` may be the infinite future.
class LoadRecord {
 public:
  LoadRecord(absl::Time from, absl::Time until) : from_(from), until_(until), last_end_(from) {}

  // `error` is empty for a call that succeeded.  Latency counts from when the call was due, not
  // from when it was sent: a stalled server would else slow down its own measurement.
  void Add(absl::Time due, absl::Time end, const std::string& error);

  uint64_t succeeded() const { return latencies_ms_.size(); }
  uint64_t failed() const;
  const std::map<std::string, uint64_t>& errors() const { return errors_; }
  LatencySummary latency_ms() const { return Summarize(latencies_ms_); }

  // From the first due call to the last end, at least the planned time where one was planned.
  absl::Duration elapsed() const;

 private:
  const absl::Time from_;
  const absl::Time until_;
  absl::Time last_end_;
  std::vector<double> latencies_ms_;
  std::map<std::string, uint64_t> errors_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_LATENCY_H_
