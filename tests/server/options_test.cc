#include "server/options.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace maxsimd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments,
                                  const Environment& environment = {}) {
  arguments.insert(arguments.begin(), "maxsimd");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data(), [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

std::string Shown(const Options& options, const std::string& name) {
  for (const auto& [shown, value] : Describe(options)) {
    if (shown == name) return value;
  }
  return "no such option";
}

std::string EnvironmentName(const std::string& option) {
  return "MAXSIMD_" + absl::AsciiStrToUpper(absl::StrReplaceAll(option, {{"-", "_"}}));
}

// A file of its own for each test and parameter.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    path_ = absl::StrCat(
        testing::TempDir(), "/",
        absl::StrReplaceAll(absl::StrCat(test.test_suite_name(), ".", test.name()), {{"/", "_"}}),
        ".toml");
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// An option: its default as it is shown, three values as they are given and shown, and values that
// it must not take.
struct Case {
  std::string name;
  std::string by_default;
  std::vector<std::pair<std::string, std::string>> good;
  std::vector<std::string> bad;
};

std::vector<Case> Cases() {
  return {
      {"listen",
       "127.0.0.1:50051",
       {{"0.0.0.0:1", "0.0.0.0:1"},
        {"[::1]:65535", "[::1]:65535"},
        {"unix:/a,host:0", "unix:/a,host:0"}},
       {"", "50051", ":50051", "host", "host:", "host:65536", "host:-1", "host:http", "::1:50051",
        "[::1", "[::1]", "unix:", "a:1,", "a:1,b"}},
      {"backend",
       "auto",
       {{"cpu", "cpu"}, {"cuda", "cuda"}, {"auto", "auto"}},
       {"", "CPU", "gpu", "cpu "}},
      {"devices",
       "",
       {{"0", "0"}, {"3,1", "3,1"}, {"1023", "1023"}},
       {"", "-1", "1024", "a", "0,", "0 1"}},
      {"threads",
       "0",
       {{"1", "1"}, {"2", "2"}, {"1024", "1024"}},
       {"", "-1", "1025", "1.5", "two", "1k"}},
      {"max-batch-tokens",
       "1048576",
       {{"1", "1"}, {"2", "2"}, {"1099511627776", "1099511627776"}},
       {"0", "1099511627777", "18446744073709551617", "1MiB"}},
      {"max-batch-delay",
       "0",
       {{"0", "0"}, {"0.25", "250ms"}, {"10s", "10s"}},
       {"", "-1ms", "10001ms", "1 s", "1sec", "nan", "-nan", "inf", "1e400", "1h1"}},
      {"packed-buffers", "3", {{"2", "2"}, {"4", "4"}, {"16", "16"}}, {"1", "17", ""}},
      {"packed-buffer-bytes",
       "0",
       {{"0", "0"}, {"5", "5"}, {"1024GiB", "1099511627776"}},
       {"1025GiB", "-1", "1TB", "KiB", "17179869184GiB", "18446744073709551616", "1KiBMiB",
        "1MiBKiB", "1mib", "0x10", "1.5GiB"}},
      {"max-message-bytes",
       "67108864",
       {{"1024", "1024"}, {"2MiB", "2097152"}, {"1000000000", "1000000000"}},
       {"1023", "2GiB", "2147483648", ""}},
      {"max-pending-calls",
       "1024",
       {{"1", "1"}, {"7", "7"}, {"1000000", "1000000"}},
       {"0", "1000001", "-1"}},
      {"max-pending-bytes",
       "1073741824",
       {{"64MiB", "67108864"}, {"1GiB", "1073741824"}, {"1048576GiB", "1125899906842624"}},
       {"1048575", "1048577GiB"}},
      {"stream-idle-timeout",
       "1m",
       {{"1ms", "1ms"}, {"90", "1m30s"}, {"24h", "24h"}},
       {"0", "999us", "24h1ns", "86401", "-1"}},
      {"drain-delay", "2s", {{"0", "0"}, {"1.5s", "1.5s"}, {"24h", "24h"}}, {"-1ns", "25h", "x"}},
      {"shutdown-grace",
       "30s",
       {{"0", "0"}, {"2m", "2m"}, {"24h", "24h"}},
       {"-1ns", "25h", "1m 2s"}},
      {"log-level",
       "info",
       {{"trace", "trace"}, {"warn", "warn"}, {"off", "off"}},
       {"", "warning", "INFO", "2"}},
      {"log-format",
       "text",
       {{"json", "json"}, {"text", "text"}, {"json", "json"}},
       {"", "xml", "JSON"}},
  };
}

class OptionsTest : public testing::TestWithParam<Case> {};

TEST_P(OptionsTest, IsItsDefaultWhereItIsNotGiven) {
  const absl::StatusOr<CommandLine> parsed = Parse({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Shown(parsed->options, GetParam().name), GetParam().by_default);
}

TEST_P(OptionsTest, TakesEachGoodValueFromEachPlace) {
  const std::string& name = GetParam().name;
  for (const auto& [given, shown] : GetParam().good) {
    const ConfigFile file(absl::StrCat(name, " = \"", given, "\"\n"));
    const std::vector<absl::StatusOr<CommandLine>> places = {
        Parse({absl::StrCat("--", name, "=", given)}), Parse({"--" + name, given}),
        Parse({}, {{EnvironmentName(name), given}}), Parse({"--config", file.path()}),
        Parse({}, {{"MAXSIMD_CONFIG", file.path()}})};
    for (const absl::StatusOr<CommandLine>& parsed : places) {
      ASSERT_TRUE(parsed.ok()) << given << ": " << parsed.status();
      EXPECT_EQ(Shown(parsed->options, name), shown);
    }
  }
}

TEST_P(OptionsTest, AFlagWinsOverTheEnvironmentAndThatOverTheFile) {
  const auto& [name, unused, good, bad] = GetParam();
  const ConfigFile file(absl::StrCat(name, " = \"", good[0].first, "\"\n"));
  const Environment environment = {{EnvironmentName(name), good[1].first}};
  const std::string config = "--config=" + file.path();
  const absl::StatusOr<CommandLine> two = Parse({config}, environment);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(Shown(two->options, name), good[1].second);
  const absl::StatusOr<CommandLine> three =
      Parse({config, absl::StrCat("--", name, "=", good[2].first)}, environment);
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(Shown(three->options, name), good[2].second);
}

TEST_P(OptionsTest, RefusesEachBadValueInEachPlaceAndNamesThePlace) {
  const std::string& name = GetParam().name;
  const std::string good_flag = absl::StrCat("--", name, "=", GetParam().good[0].first);
  for (const std::string& value : GetParam().bad) {
    const ConfigFile file(absl::StrCat(name, " = \"", value, "\"\n"));
    // What overrides it is good, and doesn't help.
    const absl::Status in_file = Parse({"--config", file.path(), good_flag}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(in_file)) << "'" << value << "': " << in_file;
    EXPECT_THAT(in_file.message(), AllOf(HasSubstr(file.path()), HasSubstr(name)));
    const absl::Status in_environment =
        Parse({good_flag}, {{EnvironmentName(name), value}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(in_environment)) << "'" << value << "': " << in_environment;
    EXPECT_THAT(in_environment.message(), HasSubstr(EnvironmentName(name)));
    const absl::Status in_flag = Parse({absl::StrCat("--", name, "=", value)}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(in_flag)) << "'" << value << "': " << in_flag;
    EXPECT_THAT(in_flag.message(), HasSubstr("--" + name));
  }
}

TEST_P(OptionsTest, TakesSeveralFlagsOnlyWhereItIsRepeatable) {
  const auto& [name, unused, good, bad] = GetParam();
  const absl::StatusOr<CommandLine> parsed = Parse(
      {absl::StrCat("--", name, "=", good[0].first), absl::StrCat("--", name, "=", good[1].first)});
  if (name == "listen") {
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_THAT(parsed->options.listen, ElementsAre(good[0].first, good[1].first));
  } else {
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << parsed.status();
    EXPECT_THAT(parsed.status().message(), HasSubstr("--" + name));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, OptionsTest, testing::ValuesIn(Cases()), [](const auto& option) {
  return absl::StrReplaceAll(option.param.name, {{"-", "_"}});
});

TEST(OptionsListTest, EveryOptionIsTestedAbove) {
  std::vector<std::string> tested;
  for (const Case& option : Cases()) tested.push_back(option.name);
  std::vector<std::string> described;
  for (const auto& [name, value] : Describe(Options())) described.push_back(name);
  EXPECT_EQ(tested, described);
}

TEST(CommandLineTest, RefusesFlagsAndArgumentsThatItDoesNotKnow) {
  EXPECT_TRUE(absl::IsInvalidArgument(Parse({"--no-such-flag=1"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Parse({"serve"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Parse({"--threads"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Parse({"--threads", "2", "3"}).status()));
}

TEST(CommandLineTest, PrintsHelpAndVersion) {
  const absl::StatusOr<CommandLine> help = Parse({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_EQ(help->action, CommandLine::Action::kPrintAndExit);
  for (const auto& [name, value] : Describe(Options()))
    EXPECT_THAT(help->text, HasSubstr("--" + name));
  const absl::StatusOr<CommandLine> version = Parse({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->action, CommandLine::Action::kPrintAndExit);
  EXPECT_TRUE(absl::StartsWith(version->text, "maxsimd ")) << version->text;
}

TEST(CommandLineTest, RefusesABudgetThatHoldsNoMessage) {
  const absl::Status status =
      Parse({"--max-message-bytes=2MiB", "--max-pending-bytes=2097151"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("max-pending-bytes"));
  EXPECT_TRUE(Parse({"--max-message-bytes=2MiB", "--max-pending-bytes=2MiB"}).ok());
}

TEST(ConfigFileTest, RefusesALineThatItDoesNotKnow) {
  for (const std::string line :
       {"max_batch = 1\n", "[server]\nthreads = 1\n", "config = \"x\"\n"}) {
    const ConfigFile file(line);
    const absl::Status status = Parse({"--config", file.path()}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line << status;
    EXPECT_THAT(status.message(), HasSubstr(file.path()));
  }
}

TEST(ConfigFileTest, TakesCommentsBareNumbersAndLists) {
  const ConfigFile file(
      "# a comment\n\nthreads = 3\nmax_batch_delay = 250ms\nlisten = [\"a:1\", \"[::1]:2\"]\n");
  const absl::StatusOr<CommandLine> parsed = Parse({"--config", file.path()});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.threads, 3);
  EXPECT_EQ(parsed->options.max_batch_delay, absl::Milliseconds(250));
  EXPECT_THAT(parsed->options.listen, ElementsAre("a:1", "[::1]:2"));
}

TEST(ConfigFileTest, TakesAnEmptyFile) {
  const ConfigFile file("");
  EXPECT_TRUE(Parse({"--config", file.path()}).ok()) << Parse({"--config", file.path()}).status();
}

TEST(ConfigFileTest, RefusesTwoLinesForOneValue) {
  for (const std::string lines :
       {"threads = 1\nthreads = 2\n", "threads = 1\nlog-level = \"off\"\nthreads = 2\n"}) {
    const ConfigFile file(lines);
    const absl::Status status = Parse({"--config", file.path()}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << lines << status;
  }
}

TEST(ConfigFileTest, IsUnavailableWhereItCannotBeRead) {
  for (const std::string& path : {testing::TempDir() + "/no/such/file", testing::TempDir()}) {
    const absl::Status status = Parse({"--config", path}).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_TRUE(absl::IsUnavailable(Parse({}, {{"MAXSIMD_CONFIG", path}}).status()));
  }
}

}  // namespace
}  // namespace maxsimd
