#include "server/log.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace maxsimd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// What `log` writes to stderr, by lines.
std::vector<std::string> Lines(const std::string& level, const std::string& format,
                               const std::function<void()>& log) {
  testing::internal::CaptureStderr();
  ConfigureLog(level, format);
  log();
  spdlog::default_logger()->flush();
  return absl::StrSplit(testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
}

TEST(LogTest, WritesOneJsonObjectPerLineWhateverTheMessageHolds) {
  const std::vector<std::string> messages = {"plain",
                                             "",
                                             "\"quoted\" and \\back\\slashed",
                                             "two\nlines\r\n\tand a tab",
                                             std::string("a\0null and \x01\x1f\x7f", 14),
                                             "{\"level\":\"fake\"}",
                                             "}{}%v%*%s",
                                             "grün 漢字 🙂",
                                             std::string(100'000, '"')};
  for (const std::string& message : messages) {
    const std::vector<std::string> lines =
        Lines("info", "json", [&] { spdlog::info("{}", message); });
    ASSERT_THAT(lines, SizeIs(1)) << message;
    const nlohmann::json line = nlohmann::json::parse(lines[0]);
    EXPECT_EQ(line.at("message"), message);
    EXPECT_EQ(line.at("level"), "info");
    EXPECT_THAT(line.at("time").get<std::string>(), HasSubstr("T"));
    EXPECT_THAT(line, SizeIs(3));
  }
}

TEST(LogTest, ReplacesWhatIsNotUtf8) {
  const std::vector<std::string> lines =
      Lines("info", "json", [] { spdlog::info("{}", "a\xff\xc3z"); });
  ASSERT_THAT(lines, SizeIs(1));
  const auto message = nlohmann::json::parse(lines[0]).at("message").get<std::string>();
  EXPECT_THAT(message, HasSubstr("\xef\xbf\xbd"));
  EXPECT_EQ(message.front(), 'a');
  EXPECT_EQ(message.back(), 'z');
}

TEST(LogTest, WritesTimeLevelAndMessageAsText) {
  const std::vector<std::string> lines = Lines("info", "text", [] { spdlog::error("it broke"); });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], testing::MatchesRegex("[0-9-]+T[0-9:.]+[+-][0-9:]+ error it broke"));
}

TEST(LogTest, WritesNothingBelowItsLevel) {
  const auto log_all = [] {
    spdlog::trace("is trace");
    spdlog::debug("is debug");
    spdlog::info("is info");
    spdlog::warn("is warn");
    spdlog::error("is error");
  };
  const std::vector<std::string> levels = {"trace", "debug", "info", "warn", "error"};
  for (size_t lowest = 0; lowest < levels.size(); ++lowest) {
    const std::vector<std::string> lines = Lines(levels[lowest], "text", log_all);
    ASSERT_THAT(lines, SizeIs(levels.size() - lowest)) << levels[lowest];
    EXPECT_THAT(lines[0], HasSubstr("is " + levels[lowest]));
  }
  EXPECT_THAT(Lines("off", "text", log_all), IsEmpty());
}

}  // namespace
}  // namespace maxsimd
