#include "client/cli/cli.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "client/cli/command.h"

namespace maxsimd {
namespace {

enum ExitCode : int { kDone = 0, kFailed = 1, kWrongUsage = 2 };

void AddCommonOptions(CLI::App* app, CommonOptions* common) {
  app->add_option("--target", common->target, "Server: HOST:PORT or unix:/path")
      ->capture_default_str();
  app->add_option("--output", common->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app->add_option("--timeout", common->timeout, "Of a call with its retries")
      ->check(IsDuration())
      ->capture_default_str();
}

void PrintError(const std::string& message, std::ostream& err) {
  err << "maxsimd-cli: " << absl::StrReplaceAll(message, {{"\r", " "}, {"\n", " "}}) << "\n";
}

class Cli {
 public:
  Cli() {
    // Not exactly 1: the parser would then hide a misspelt command behind "a subcommand is
    // required".
    app_.require_subcommand(0, 1);
    AddCommonOptions(&app_, &common_);
    Add(MakeRerankCommand());
    Add(MakeSmokeCommand());
    Add(MakeBenchCommand());
    Add(MakeInfoCommand());
    Add(MakeHealthCommand());
  }

  int Run(int argc, const char* const* argv, const Output& output) {
    try {  // The parser reports by exceptions, help included.
      app_.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app_.exit(success, output.out, output.err);
    } catch (const CLI::Error& error) {
      PrintError(absl::StrCat(error.what(), " (see --help)"), output.err);
      return kWrongUsage;
    }
    for (const auto& [parser, command] : commands_) {
      if (!parser->parsed()) continue;
      const absl::Status status = command->Run(common_, output);
      if (status.ok()) return kDone;
      PrintError(absl::StrCat(parser->get_name(), ": ", status.ToString()), output.err);
      return kFailed;
    }
    PrintError("expected a command (see --help)", output.err);
    return kWrongUsage;
  }

 private:
  void Add(std::unique_ptr<Command> command) {
    CLI::App* parser = command->AddTo(&app_);
    AddCommonOptions(parser, &common_);
    commands_.emplace_back(parser, std::move(command));
  }

  CLI::App app_{"Reranks documents by late interaction (MaxSim) with a maxsimd server",
                "maxsimd-cli"};
  CommonOptions common_;
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> commands_;
};

}  // namespace

int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
           const Terminal& terminal) {
  const int code = Cli().Run(argc, argv, {out, err, terminal});
  out.flush();
  if (out) return code;
  PrintError("standard output can't be written", err);
  return kFailed;
}

}  // namespace maxsimd
