// maxsimd_bench_server: what maxsimd is measured against, and maxsimd itself with its counters.
//
//   maxsimd_bench_server --kind=null [--documents=N] [--copy] [--plain] [maxsimd's options]
//   maxsimd_bench_server --kind=stub [--batch-time=200us] [maxsimd's options]
//   maxsimd_bench_server --kind=maxsimd [maxsimd's options]
//
// null answers without looking at what it receives (null_service.h), with maxsimd's settings of
// gRPC and the allocator, or with --plain with their defaults; stub is maxsimd with a scorer that
// scores nothing (stub_scorer.h).  Serves until SIGTERM, then writes the counters of its batches to
// standard output as JSON.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "spdlog/spdlog.h"

#include "server/allocator.h"
#include "server/grpc_arguments.h"
#include "server/log.h"
#include "server/options.h"
#include "server/rpc/rerank_service.h"
#include "server/server.h"
#include "server/sizing.h"
#include "tests/bench/null_service.h"
#include "tests/bench/stub_scorer.h"

namespace maxsimd {
namespace {

struct BenchOptions {
  std::string kind;
  size_t documents = 0;
  bool copy = false;
  bool plain = false;
  std::string batch_time = "0";
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "maxsimd_bench_server: %s\n", std::string(status.message()).c_str());
  return 1;
}

std::vector<std::unique_ptr<Scorer>> StubScorers(absl::Duration batch_time) {
  std::vector<std::unique_ptr<Scorer>> scorers;
  scorers.push_back(std::make_unique<StubScorer>(batch_time));
  return scorers;
}

void AwaitSignal(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
}

int ServeNull(const BenchOptions& bench, const Options& options, const sigset_t& signals) {
  NullService null(bench.documents, bench.copy);
  InfoService info(MakeServerInfo(LimitsFor(options), StubScorers(absl::ZeroDuration())));
  grpc::ServerBuilder builder;
  if (bench.plain) {
    builder.SetMaxReceiveMessageSize(-1);
  } else {
    SetArguments(options, builder);
  }
  builder.RegisterCallbackGenericService(&null);
  builder.RegisterService(&info);
  int port = 0;
  builder.AddListeningPort(options.listen.front(), grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return Fail(absl::UnavailableError("the address cannot be bound"));
  const std::string& address = options.listen.front();
  const bool is_path = address.rfind("unix:", 0) == 0;
  spdlog::info(
      "listening on {}",
      is_path ? address : address.substr(0, address.rfind(':') + 1) + std::to_string(port));
  AwaitSignal(signals);
  std::_Exit(0);
}

int ServeMaxsimd(const BenchOptions& bench, const Options& options, const sigset_t& signals) {
  absl::Duration batch_time;
  if (!absl::ParseDuration(bench.batch_time, &batch_time)) {
    return Fail(absl::InvalidArgumentError("--batch-time: no duration"));
  }
  const absl::StatusOr<std::unique_ptr<Server>> server =
      bench.kind == "stub" ? Server::Start(options, StubScorers(batch_time))
                           : Server::Start(options);
  if (!server.ok()) return Fail(server.status());
  (*server)->LogStart();
  AwaitSignal(signals);
  const BatcherCounters counters = (*server)->counters();
  std::printf("{\"batches\": %llu, \"groups\": %llu, \"documents\": %llu}\n",
              static_cast<unsigned long long>(counters.batches),
              static_cast<unsigned long long>(counters.groups),
              static_cast<unsigned long long>(counters.documents));
  std::fflush(stdout);
  std::_Exit(0);
}

int Main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // Before there are threads to inherit the mask.

  BenchOptions bench;
  CLI::App app("What maxsimd is measured against");
  app.allow_extras();
  app.add_option("--kind", bench.kind)
      ->required()
      ->check(CLI::IsMember({"null", "stub", "maxsimd"}));
  app.add_option("--documents", bench.documents);
  app.add_flag("--copy", bench.copy);
  app.add_flag("--plain", bench.plain);
  app.add_option("--batch-time", bench.batch_time);
  CLI11_PARSE(app, argc, argv);
  if (!bench.plain) KeepFreedMemory();

  std::vector<std::string> words = app.remaining();
  words.insert(words.begin(), argv[0]);
  std::vector<const char*> rest;
  for (const std::string& word : words) rest.push_back(word.c_str());
  const absl::StatusOr<CommandLine> command_line =
      ParseCommandLine(static_cast<int>(rest.size()), rest.data(),
                       [](const char*) -> const char* { return nullptr; });
  if (!command_line.ok()) return Fail(command_line.status());
  ConfigureLog("info", "text");
  RouteGrpcLog();
  return bench.kind == "null" ? ServeNull(bench, command_line->options, signals)
                              : ServeMaxsimd(bench, command_line->options, signals);
}

}  // namespace
}  // namespace maxsimd

int main(int argc, char** argv) {
  return maxsimd::Main(argc, argv);
}
