#include "client/retry_policy.h"

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

using absl::StatusCode;

TEST(RetryPolicyTest, DoublesItsWaitUpToTheCap) {
  const RetryPolicy policy{.max_attempts = 100};
  const auto delay = [&](int attempts, double chance) {
    return *RetryDelay(policy, attempts, StatusCode::kUnavailable, std::nullopt, chance);
  };
  EXPECT_EQ(delay(1, 0.5), absl::Milliseconds(50));
  EXPECT_EQ(delay(2, 0.5), absl::Milliseconds(100));
  EXPECT_EQ(delay(6, 0.5), absl::Milliseconds(1600));
  EXPECT_EQ(delay(7, 0.5), absl::Milliseconds(2500));
  EXPECT_EQ(delay(99, 0.5), absl::Milliseconds(2500));
  EXPECT_EQ(delay(3, 0), absl::ZeroDuration());
}

TEST(RetryPolicyTest, WaitsAsLongAsTheServerSays) {
  const RetryPolicy policy;
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kResourceExhausted}) {
    EXPECT_EQ(RetryDelay(policy, 1, code, "7000", 0.5), absl::Seconds(7));
    EXPECT_EQ(RetryDelay(policy, 1, code, "0", 0.5), absl::ZeroDuration());
    EXPECT_EQ(RetryDelay(policy, 1, code, "-1", 0.5), std::nullopt);
    EXPECT_EQ(RetryDelay(policy, 1, code, "", 0.5), std::nullopt);
    EXPECT_EQ(RetryDelay(policy, 1, code, "1e3", 0.5), std::nullopt);
    EXPECT_EQ(RetryDelay(policy, 1, code, "99999999999999999999", 0.5), std::nullopt);
  }
}

TEST(RetryPolicyTest, RepeatsNothingElse) {
  const RetryPolicy policy;
  EXPECT_EQ(RetryDelay(policy, 1, StatusCode::kResourceExhausted, std::nullopt, 0.5), std::nullopt);
  for (int code = 1; code <= 16; ++code) {
    const auto status = static_cast<StatusCode>(code);
    if (status == StatusCode::kUnavailable || status == StatusCode::kResourceExhausted) continue;
    EXPECT_EQ(RetryDelay(policy, 1, status, "10", 0.5), std::nullopt) << code;
  }
}

TEST(RetryPolicyTest, StopsAtTheLastAttempt) {
  const RetryPolicy policy{.max_attempts = 3};
  EXPECT_TRUE(RetryDelay(policy, 2, StatusCode::kUnavailable, "0", 0.5).has_value());
  EXPECT_FALSE(RetryDelay(policy, 3, StatusCode::kUnavailable, "0", 0.5).has_value());
}

}  // namespace
}  // namespace maxsimd
