// The command line of maxsimd: rerank, smoke, bench, info, health.
//
// Exit codes: 0 done; 1 a run-time failure (a server's error, an unreadable or malformed file, a
// wrong score, a server that does not serve); 2 wrong usage.  Every error is one line on `err`.
#ifndef MAXSIMD_CLIENT_CLI_CLI_H_
#define MAXSIMD_CLIENT_CLI_CLI_H_

#include <ostream>

namespace maxsimd {

// What the output goes to; without a terminal nothing is trimmed and no progress shown.
struct Terminal {
  int columns = 0;        // Of standard output; 0 where that is no terminal.
  bool progress = false;  // Standard error is a terminal.
};

int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
           const Terminal& terminal = {});

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_CLI_H_
