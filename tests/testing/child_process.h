// The server's binary as a process of its own: its command line, signals, exit code and memory.
//
// Threads: one at a time.
#ifndef MAXSIMD_TESTS_TESTING_CHILD_PROCESS_H_
#define MAXSIMD_TESTS_TESTING_CHILD_PROCESS_H_

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include <sys/types.h>

#include "kernels/mutex.h"

namespace maxsimd {

class ChildProcess {
 public:
  // `environment` as NAME=VALUE, beside the test's own.
  ChildProcess(const std::string& path, const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {});
  // Kills it if it still runs.
  ~ChildProcess();

  // Waits for a line of either output that holds `text`; "" if the output ends before.
  std::string AwaitLine(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  // The address that its log says it listens on; "" if it ends before.
  std::string AwaitAddress();

  void Signal(int signal);

  // Waits for its end: the exit code, or -signal.  A hang fails the test and ends the process.
  int AwaitExit() ABSL_LOCKS_EXCLUDED(mutex_);

  // All of its output; whole after AwaitExit.
  std::string standard_output() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string standard_error() const ABSL_LOCKS_EXCLUDED(mutex_);

  // VmHWM, or VmRSS with `peak` false: bytes.
  size_t resident_bytes(bool peak) const;

 private:
  struct Output {
    int pipe = -1;
    std::string text;
    bool ended = false;
    std::thread reader;
  };

  void ReadAll(Output* output) ABSL_LOCKS_EXCLUDED(mutex_);

  pid_t pid_ = -1;
  bool reaped_ = false;
  int exit_code_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  Output out_ ABSL_GUARDED_BY(mutex_);
  Output error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_CHILD_PROCESS_H_
