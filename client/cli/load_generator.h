// Puts load on something that answers calls, and records how long they take.
//
// Closed loop: `concurrency` calls are always under way; each end starts the next, a failure only
// after a pause, so that a server that is gone isn't asked as fast as the processor can.  Open
// loop: calls are due at the times of a Poisson process, whether or not earlier ones have ended.
//
// Threads: Run blocks; the calls themselves need none.  `start` must not call `done` before it
// returns.
#ifndef MAXSIMD_CLIENT_CLI_LOAD_GENERATOR_H_
#define MAXSIMD_CLIENT_CLI_LOAD_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"

#include "client/cli/latency.h"

namespace maxsimd {

struct LoadPlan {
  int64_t concurrency = 1;
  double rate = 0;  // Calls a second; above 0 makes the loop open.
  uint64_t seed = 1;
  absl::Duration warm_up;   // Calls due in it are made, not counted.
  absl::Duration duration;  // Of what is counted.
  // Closed loop: no more calls than these, warm-up included, and that many however long they take;
  // 0: as many as there is time for.
  uint64_t calls = 0;
};

// `error` is empty where the call succeeded, else a word to count it under.
using LoadDone = std::function<void(const std::string& error)>;
using LoadStart = std::function<void(LoadDone done)>;

// Told about once a second; `ended` counts all calls, warm-up included.
using LoadProgress = std::function<void(absl::Duration since_start, uint64_t ended)>;

// Returns when the last call has ended.
LoadRecord RunLoad(const LoadPlan& plan, const LoadStart& start, const LoadProgress& progress);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_LOAD_GENERATOR_H_
