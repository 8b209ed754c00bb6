// Whether, and after how long, a failed call is worth repeating.  Pure; chance is passed in.
//
// Every call of the service may be repeated safely.  What is repeated: UNAVAILABLE (draining, or no
// connection) and RESOURCE_EXHAUSTED for which the server names a time (overload); never what the
// server's trailer grpc-retry-pushback-ms says not to: a negative or unreadable value, as for a
// limit that would be exceeded again.
//
// Wait: what the server says, else a random part of initial * multiplier^n, capped ("full jitter":
// clients that failed together don't come back together).
// Source: gRPC proposal A6.
#ifndef MAXSIMD_CLIENT_RETRY_POLICY_H_
#define MAXSIMD_CLIENT_RETRY_POLICY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace maxsimd {

struct RetryPolicy {
  int max_attempts = 5;  // The first one counts.
  absl::Duration initial_backoff = absl::Milliseconds(100);
  double multiplier = 2;
  absl::Duration max_backoff = absl::Seconds(5);
};

// Before the attempt after the `attempts`-th, which failed with `code`; nullopt: give up.
// `pushback` is the trailer's value, if there is one; `chance` lies in [0, 1).
std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy, int attempts,
                                         absl::StatusCode code,
                                         const std::optional<std::string>& pushback, double chance);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_RETRY_POLICY_H_
