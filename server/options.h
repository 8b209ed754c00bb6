// Every tunable of the server, with its default, and how it is set.
//
// Each is a flag (--max-batch-delay), an environment variable (MAXSIMD_MAX_BATCH_DELAY) and a line
// of the file that --config names (max-batch-delay = 1ms); the first of these three that is given
// wins, then the default.  Whichever it comes from, a bad value is the same error, never the
// default.
//
// Units: durations as "250ms", "2s", "1m", a bare number being seconds; bytes as "67108864",
// "64MiB" or "1GiB".
#ifndef MAXSIMD_SERVER_OPTIONS_H_
#define MAXSIMD_SERVER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace maxsimd {

struct Options {
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  std::string backend = "auto";
  std::vector<int> devices;
  int threads = 0;

  uint64_t max_batch_tokens = uint64_t{1} << 20;
  absl::Duration max_batch_delay = absl::ZeroDuration();
  int packed_buffers = 3;
  uint64_t packed_buffer_bytes = 0;  // 0: what the largest legal message needs.

  uint64_t max_message_bytes = uint64_t{64} << 20;
  uint64_t max_pending_calls = 1024;
  uint64_t max_pending_bytes = uint64_t{1} << 30;

  absl::Duration stream_idle_timeout = absl::Seconds(60);
  absl::Duration drain_delay = absl::Seconds(2);
  absl::Duration shutdown_grace = absl::Seconds(30);

  std::string log_level = "info";
  std::string log_format = "text";
};

// What the command line asks for.
struct CommandLine {
  enum class Action { kServe, kPrintAndExit };
  Action action = Action::kServe;
  std::string text;  // Help or version.
  Options options;
};

// Reads flags, environment and config file.
//
// Errors: InvalidArgument   a flag, variable or line is unknown or its value is out of range: the
//                           message names where it stands, the value and what was expected
//         Unavailable       the config file cannot be read
using GetEnv = std::function<const char*(const char*)>;
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv,
                                             const GetEnv& get_env);

// Name and effective value of every option, for the log.
std::vector<std::pair<std::string, std::string>> Describe(const Options& options);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_OPTIONS_H_
