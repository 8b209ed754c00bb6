// What the commands of the command line have in common.
//
// A command adds its flags to the parser, which fills its members; then it runs.
#ifndef MAXSIMD_CLIENT_CLI_COMMAND_H_
#define MAXSIMD_CLIENT_CLI_COMMAND_H_

#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include <grpcpp/channel.h>

#include "client/cli/cli.h"
#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {

struct CommonOptions {
  std::string target = "127.0.0.1:50051";
  std::string output = "table";  // Or "json".
  std::string timeout = "60s";

  bool json() const { return output == "json"; }
  absl::Duration timeout_duration() const;
};

struct Output {
  std::ostream& out;
  std::ostream& err;
  Terminal terminal;
};

class Command {
 public:
  virtual ~Command() = default;
  virtual CLI::App* AddTo(CLI::App* app) = 0;
  virtual absl::Status Run(const CommonOptions& common, const Output& output) = 0;
};

std::unique_ptr<Command> MakeRerankCommand();
std::unique_ptr<Command> MakeSmokeCommand();
std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeInfoCommand();
std::unique_ptr<Command> MakeHealthCommand();

// A connection of its own, whatever other channels there are to the same target.
std::shared_ptr<grpc::Channel> Connect(const std::string& target);

// Checks of flags' values; a wrong one is wrong usage.
CLI::Validator IsDuration();        // As absl::ParseDuration has them: "500ms", "1m30s"; above 0.
CLI::Validator IsDurationOrNone();  // Or 0.
CLI::Validator IsPositiveNumber();  // Finite.
CLI::Validator IsElementType();     // "float32", "float16", "bfloat16".

// UNSPECIFIED for "".
v1::ElementType ElementTypeFromName(const std::string& name);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_COMMAND_H_
