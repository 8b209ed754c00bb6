// The process's log: one line per event on stderr, as text or as JSON objects.
//
// Threads: call ConfigureLog once, before any thread logs.
#ifndef MAXSIMD_SERVER_LOG_H_
#define MAXSIMD_SERVER_LOG_H_

#include <string>

namespace maxsimd {

// `level` and `format` as --log-level and --log-format take them.
void ConfigureLog(const std::string& level, const std::string& format);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_LOG_H_
