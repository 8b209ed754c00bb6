#include "server/options.h"

#include <fstream>
#include <map>
#include <sstream>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

// One option: how its values are read and shown.  `set` returns what was expected, or "".
struct Setting {
  std::string name;
  std::string help;
  bool repeatable = false;
  std::function<std::string(Options&, const std::vector<std::string>&)> set;
  std::function<std::string(const Options&)> show;
};

bool ReadBytes(absl::string_view text, uint64_t* bytes) {
  int shift = 0;
  for (const auto& [suffix, bits] :
       {std::pair<absl::string_view, int>{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}) {
    if (!absl::ConsumeSuffix(&text, suffix)) continue;
    shift = bits;
    break;
  }
  return absl::SimpleAtoi(text, bytes) && (*bytes << shift) >> shift == *bytes &&
         ((*bytes <<= shift), true);
}

bool ReadDuration(absl::string_view text, absl::Duration* duration) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    *duration = absl::Seconds(seconds);
    return true;
  }
  return absl::ParseDuration(text, duration);
}

Setting Text(std::string name, std::string Options::*field, std::vector<std::string> choices,
             std::string help) {
  const auto set = [field, choices](Options& options, const std::vector<std::string>& values) {
    for (const std::string& choice : choices) {
      if (values.back() == choice) {
        options.*field = choice;
        return std::string();
      }
    }
    return absl::StrCat("one of ", absl::StrJoin(choices, ", "));
  };
  return {std::move(name), absl::StrCat(help, ": ", absl::StrJoin(choices, ", ")), false, set,
          [field](const Options& options) { return options.*field; }};
}

template <typename Integer>
Setting Count(std::string name, Integer Options::*field, uint64_t low, uint64_t high,
              std::string help) {
  const auto set = [field, low, high](Options& options, const std::vector<std::string>& values) {
    uint64_t value = 0;
    if (!absl::SimpleAtoi(values.back(), &value) || value < low || value > high) {
      return absl::StrCat("an integer from ", low, " to ", high);
    }
    options.*field = static_cast<Integer>(value);
    return std::string();
  };
  return {std::move(name), std::move(help), false, set,
          [field](const Options& options) { return absl::StrCat(options.*field); }};
}

Setting Bytes(std::string name, uint64_t Options::*field, uint64_t low, uint64_t high,
              std::string help) {
  const auto set = [field, low, high](Options& options, const std::vector<std::string>& values) {
    uint64_t value = 0;
    if (!ReadBytes(values.back(), &value) || value < low || value > high) {
      return absl::StrCat("bytes from ", low, " to ", high, ", as 67108864, 64MiB or 1GiB");
    }
    options.*field = value;
    return std::string();
  };
  return {std::move(name), std::move(help), false, set,
          [field](const Options& options) { return absl::StrCat(options.*field); }};
}

Setting Time(std::string name, absl::Duration Options::*field, absl::Duration low,
             absl::Duration high, std::string help) {
  const auto set = [=](Options& options, const std::vector<std::string>& values) {
    absl::Duration value;
    if (!ReadDuration(values.back(), &value) || value < low || value > high) {
      return absl::StrCat("a duration from ", absl::FormatDuration(low), " to ",
                          absl::FormatDuration(high), ", as 250ms, 2s or 1m");
    }
    options.*field = value;
    return std::string();
  };
  return {std::move(name), std::move(help), false, set,
          [field](const Options& options) { return absl::FormatDuration(options.*field); }};
}

// HOST:PORT, [IPV6]:PORT or unix:/path.
bool IsAddress(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "unix:")) return !text.empty();
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view host = text.substr(0, colon);
  if (absl::StrContains(host, ':') && !(host.front() == '[' && host.back() == ']')) return false;
  return absl::SimpleAtoi(text.substr(colon + 1), &port) && port <= 65535;
}

Setting Listen() {
  const auto set = [](Options& options, const std::vector<std::string>& values) {
    options.listen.clear();
    for (const std::string& value : values) {
      for (const absl::string_view address : absl::StrSplit(value, ',')) {
        if (!IsAddress(address)) return std::string("HOST:PORT or unix:/path");
        options.listen.emplace_back(address);
      }
    }
    return std::string();
  };
  return {"listen", "address to serve on, repeatable: HOST:PORT or unix:/path", true, set,
          [](const Options& options) { return absl::StrJoin(options.listen, ","); }};
}

Setting Devices() {
  const auto set = [](Options& options, const std::vector<std::string>& values) {
    options.devices.clear();
    for (const absl::string_view item : absl::StrSplit(values.back(), ',')) {
      int device = 0;
      if (!absl::SimpleAtoi(item, &device) || device < 0 || device > 1023) {
        return std::string("CUDA device numbers, as 0,1");
      }
      options.devices.push_back(device);
    }
    return std::string();
  };
  return {"devices", "CUDA devices to score on, as 0,1 (default: the first)", false, set,
          [](const Options& options) { return absl::StrJoin(options.devices, ","); }};
}

std::vector<Setting> Settings() {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  // A protobuf message is smaller than 2 GiB.
  constexpr uint64_t kLargestMessage = (uint64_t{1} << 31) - 1;
  const absl::Duration day = absl::Hours(24);
  return {
      Listen(),
      Text("backend", &Options::backend, {"auto", "cpu", "cuda"}, "what scores"),
      Devices(),
      Count("threads", &Options::threads, 0, 1024, "CPU threads that score; 0: one per core"),
      Count("max-batch-tokens", &Options::max_batch_tokens, 1, uint64_t{1} << 40,
            "document tokens in a batch"),
      Time("max-batch-delay", &Options::max_batch_delay, absl::ZeroDuration(), absl::Seconds(10),
           "how long an idle device waits for a batch to fill"),
      Count("packed-buffers", &Options::packed_buffers, 2, 16,
            "buffers that documents are packed in"),
      Bytes("packed-buffer-bytes", &Options::packed_buffer_bytes, 0, uint64_t{1} << 40,
            "size of each; 0: what the largest legal message needs"),
      Bytes("max-message-bytes", &Options::max_message_bytes, 1024, kLargestMessage,
            "largest Rerank message"),
      Count("max-pending-calls", &Options::max_pending_calls, 1, 1'000'000, "calls in progress"),
      Bytes("max-pending-bytes", &Options::max_pending_bytes, kMiB, uint64_t{1} << 50,
            "bytes of messages and results held at a time"),
      Time("stream-idle-timeout", &Options::stream_idle_timeout, absl::Milliseconds(1), day,
           "how long a client may send or read nothing"),
      Time("drain-delay", &Options::drain_delay, absl::ZeroDuration(), day,
           "how long new calls are served after SIGTERM"),
      Time("shutdown-grace", &Options::shutdown_grace, absl::ZeroDuration(), day,
           "how long calls in flight may take to finish after that"),
      Text("log-level", &Options::log_level, {"trace", "debug", "info", "warn", "error", "off"},
           "least severe line that is logged"),
      Text("log-format", &Options::log_format, {"text", "json"}, "form of log lines"),
  };
}

using Values = std::map<std::string, std::vector<std::string>>;

std::string EnvironmentName(absl::string_view option) {
  return absl::StrCat("MAXSIMD_", absl::AsciiStrToUpper(absl::StrReplaceAll(option, {{"-", "_"}})));
}

absl::StatusOr<Values> ReadConfigFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  file.peek();
  if (file.eof()) return Values();  // An empty file; copying nothing would count as a failure.
  if (!file || !(text << file.rdbuf())) {
    return absl::UnavailableError(absl::StrCat("config file ", path, " cannot be read"));
  }
  Values values;
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
      const std::string name =
          absl::StrJoin(item.parents, ".") + (item.parents.empty() ? "" : ".") + item.name;
      std::vector<std::string>& given = values[absl::StrReplaceAll(name, {{"_", "-"}})];
      given.insert(given.end(), item.inputs.begin(), item.inputs.end());
    }
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
  return values;
}

absl::Status Apply(const std::vector<Setting>& settings, const Values& values,
                   const std::function<std::string(const std::string&)>& where, Options& options) {
  for (const Setting& setting : settings) {
    const auto found = values.find(setting.name);
    if (found == values.end()) continue;
    const std::string place = where(setting.name);
    if (found->second.empty() || (found->second.size() > 1 && !setting.repeatable)) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": expected one value"));
    }
    const std::string expected = setting.set(options, found->second);
    if (!expected.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": '", absl::StrJoin(found->second, ","), "' is not ", expected));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyConfigFile(const std::vector<Setting>& settings, const std::string& path,
                             Options& options) {
  ASSIGN_OR_RETURN(const Values values, ReadConfigFile(path));
  for (const auto& [name, unused] : values) {
    const bool known = std::any_of(settings.begin(), settings.end(),
                                   [&](const Setting& setting) { return setting.name == name; });
    if (!known) return absl::InvalidArgumentError(absl::StrCat(path, ": unknown option ", name));
  }
  return Apply(
      settings, values, [&](const std::string& name) { return path + ": " + name; }, options);
}

absl::Status CheckTogether(const Options& options) {
  if (options.max_pending_bytes < options.max_message_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max-pending-bytes: ", options.max_pending_bytes, " is less than max-message-bytes, ",
        options.max_message_bytes, ": no message could ever be read"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv,
                                             const GetEnv& get_env) {
  const std::vector<Setting> settings = Settings();
  CommandLine command_line;
  CLI::App app("maxsimd: reranks documents by late interaction (MaxSim) over gRPC", "maxsimd");
  app.set_version_flag("--version", absl::StrCat("maxsimd ", MAXSIMD_VERSION));
  Values flags;
  for (const Setting& setting : settings) {
    app.add_option("--" + setting.name, flags[setting.name], setting.help)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  std::vector<std::string> config;
  app.add_option("--config", config, "file of 'option = value' lines")->allow_extra_args(false);
  app.footer(
      "Each option is also read from the environment (MAXSIMD_MAX_BATCH_DELAY) and the file;\n"
      "precedence: flag, environment, file, default.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    command_line.action = CommandLine::Action::kPrintAndExit;
    command_line.text = app.help();
    return command_line;
  } catch (const CLI::CallForVersion& version) {
    command_line.action = CommandLine::Action::kPrintAndExit;
    command_line.text = absl::StrCat(version.what(), "\n");
    return command_line;
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }

  Values environment;
  for (auto flag = flags.begin(); flag != flags.end();) {
    const char* value = get_env(EnvironmentName(flag->first).c_str());
    if (value != nullptr) environment[flag->first] = {value};
    flag = app.count("--" + flag->first) == 0 ? flags.erase(flag) : std::next(flag);
  }
  if (config.empty()) {
    if (const char* path = get_env("MAXSIMD_CONFIG"); path != nullptr) config.push_back(path);
  }
  // Least to most important, so that what is given last wins; and each is checked even where
  // another overrides it.
  if (!config.empty()) {
    RETURN_IF_ERROR(ApplyConfigFile(settings, config.back(), command_line.options));
  }
  RETURN_IF_ERROR(Apply(settings, environment, EnvironmentName, command_line.options));
  RETURN_IF_ERROR(Apply(
      settings, flags, [](const std::string& name) { return "--" + name; }, command_line.options));
  RETURN_IF_ERROR(CheckTogether(command_line.options));
  return command_line;
}

std::vector<std::pair<std::string, std::string>> Describe(const Options& options) {
  std::vector<std::pair<std::string, std::string>> described;
  for (const Setting& setting : Settings())
    described.emplace_back(setting.name, setting.show(options));
  return described;
}

}  // namespace maxsimd
