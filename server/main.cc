// maxsimd: reads the command line, serves until SIGTERM or SIGINT, drains.
//
// Exit codes: 0 drained; 1 a run-time failure; 2 wrong usage.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "spdlog/spdlog.h"

#include "server/allocator.h"
#include "server/grpc_arguments.h"
#include "server/log.h"
#include "server/options.h"
#include "server/server.h"

namespace {

constexpr int kRunTimeFailure = 1;
constexpr int kWrongUsage = 2;

int Fail(const absl::Status& status) {
  const bool usage = absl::IsInvalidArgument(status);
  std::fprintf(stderr, "maxsimd: %s%s\n", std::string(status.message()).c_str(),
               usage ? " (see maxsimd --help)" : "");
  return usage ? kWrongUsage : kRunTimeFailure;
}

// Signals are taken by sigwait in one thread: a handler could do next to nothing.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

int Serve(const maxsimd::Options& options) {
  const sigset_t signals = BlockSignals();  // Before there are threads to inherit the mask.
  maxsimd::ConfigureLog(options.log_level, options.log_format);
  maxsimd::RouteGrpcLog();
  absl::StatusOr<std::unique_ptr<maxsimd::Server>> server = maxsimd::Server::Start(options);
  if (!server.ok()) return Fail(server.status());
  (*server)->LogStart();

  std::thread([signals, raw = server->get()] {
    while (true) {
      int signal = 0;
      if (sigwait(&signals, &signal) == 0) raw->RequestDrain();
    }
  }).detach();
  const absl::Status drained = (*server)->Run();
  const int exit_code = drained.ok() ? 0 : Fail(drained);
  if (drained.ok()) spdlog::info("drained");
  // Not through destructors: gRPC's shutdown would cancel the calls that arrive just now (see
  // server.h), and the signal thread still uses the server.
  std::_Exit(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  maxsimd::KeepFreedMemory();
  const absl::StatusOr<maxsimd::CommandLine> command_line =
      maxsimd::ParseCommandLine(argc, argv, [](const char* name) { return std::getenv(name); });
  if (!command_line.ok()) return Fail(command_line.status());
  if (command_line->action == maxsimd::CommandLine::Action::kPrintAndExit) {
    std::fputs(command_line->text.c_str(), stdout);
    return 0;
  }
  return Serve(command_line->options);
}
