// Waiting for what another thread or process will do, with a bound that only a hang reaches.
//
// Where there is something to wait on, wait on that (RawCall, Gate); Eventually is for state that
// can only be asked for, such as a server's usage().
#ifndef MAXSIMD_TESTS_TESTING_PATIENCE_H_
#define MAXSIMD_TESTS_TESTING_PATIENCE_H_

#include <chrono>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace maxsimd {

// Far beyond what anything here takes, also under sanitizers on a busy machine.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Whether `holds` became true in time.
template <typename Condition>
bool Eventually(const Condition& holds, absl::Duration patience = kPatience) {
  const absl::Time deadline = absl::Now() + patience;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // Between two looks.
  }
  return true;
}

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_PATIENCE_H_
