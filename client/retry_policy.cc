#include "client/retry_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/numbers.h"

namespace maxsimd {

std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy, int attempts,
                                         absl::StatusCode code,
                                         const std::optional<std::string>& pushback,
                                         double chance) {
  if (attempts >= policy.max_attempts) return std::nullopt;
  const bool overloaded = code == absl::StatusCode::kResourceExhausted && pushback.has_value();
  if (code != absl::StatusCode::kUnavailable && !overloaded) return std::nullopt;
  if (pushback.has_value()) {
    int64_t milliseconds;
    if (!absl::SimpleAtoi(*pushback, &milliseconds) || milliseconds < 0) return std::nullopt;
    return absl::Milliseconds(milliseconds);
  }
  const absl::Duration backoff =
      policy.initial_backoff * std::pow(policy.multiplier, std::min(attempts - 1, 60));
  return chance * std::min(backoff, policy.max_backoff);
}

}  // namespace maxsimd
