// The binary: command line, signals, exit codes.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include <unistd.h>

#include "tests/testing/child_process.h"
#include "tests/testing/health_client.h"
#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

using grpc::StatusCode;
using Arguments = std::vector<std::string>;

constexpr char kBinary[] = MAXSIMD_BINARY;

// A small server on a port of its own, which ends without delay unless `more` says otherwise.
Arguments Small(const Arguments& more = {"--drain-delay=0"}) {
  Arguments arguments = {"--listen=127.0.0.1:0", "--backend=cpu", "--threads=1",
                         "--max-message-bytes=4MiB", "--packed-buffers=2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// About a third of a second's work for one thread of the least instruction set, in units that can
// be dropped; little to send.
v1::RerankRequest MakeLongRequest() {
  v1::RerankRequest request = MakeUniformRequest(1, 2'000, {.dim = 128, .query_tokens = 128});
  request.mutable_documents()->clear_lengths();
  for (int document = 0; document < 300; ++document) {
    request.mutable_documents()->add_lengths(1'000 + document);
    request.mutable_documents()->add_offsets(0);
  }
  return request;
}

class SignalTest : public ::testing::TestWithParam<int> {};

TEST_P(SignalTest, AnIdleServerExitsWithZero) {
  ChildProcess server(kBinary, Small());
  const std::string address = server.AwaitAddress();
  ASSERT_NE(address, "");
  EXPECT_TRUE(Exchange(ConnectTo(address), kRerankMethod, {ToBuffer(MakeRequest({}))}).status.ok());
  server.Signal(GetParam());
  EXPECT_EQ(server.AwaitExit(), 0) << server.standard_error();
  EXPECT_NE(server.standard_error().find("drained"), std::string::npos);
}

TEST_P(SignalTest, WhatIsQueuedRunningAndStreamingIsFinished) {
  ChildProcess server(kBinary, Small());
  const auto channel = ConnectTo(server.AwaitAddress());
  RawCall running(channel, kRerankMethod);
  ASSERT_TRUE(running.Write(ToBuffer(MakeLongRequest())));
  ASSERT_TRUE(running.AwaitResponses(1));
  RawCall queued(channel, kRerankMethod);
  ASSERT_TRUE(queued.Write(ToBuffer(MakeLongRequest())));
  RawCall streaming(channel, kRerankStreamMethod);
  ASSERT_TRUE(streaming.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(streaming.AwaitResponses(1));
  server.Signal(GetParam());
  ASSERT_NE(server.AwaitLine("draining"), "");
  EXPECT_TRUE(streaming.Write(StreamChunk(MakeRequest({}))));
  streaming.WritesDone();
  for (RawCall* call : {&running, &queued, &streaming}) {
    const Outcome outcome = call->Finish();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  }
  EXPECT_EQ(server.AwaitExit(), 0) << server.standard_error();
}

TEST_P(SignalTest, ASecondSignalCutsOff) {
  ChildProcess server(kBinary, Small({"--drain-delay=1h", "--shutdown-grace=1h"}));
  const auto channel = ConnectTo(server.AwaitAddress());
  RawCall streaming(channel, kRerankStreamMethod);
  ASSERT_TRUE(streaming.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(streaming.AwaitResponses(1));
  server.Signal(GetParam());
  ASSERT_NE(server.AwaitLine("draining"), "");
  EXPECT_EQ(CheckHealth(channel, ""), Health::kNotServing);
  server.Signal(GetParam());
  EXPECT_EQ(streaming.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.AwaitExit(), 0) << server.standard_error();
}

TEST_P(SignalTest, AfterTheGraceCallsEndUnavailable) {
  ChildProcess server(kBinary, Small({"--drain-delay=0", "--shutdown-grace=50ms"}));
  const auto channel = ConnectTo(server.AwaitAddress());
  RawCall streaming(channel, kRerankStreamMethod);
  ASSERT_TRUE(streaming.Write(StreamStart(MakeRequest({}))));
  ASSERT_TRUE(streaming.AwaitResponses(1));
  server.Signal(GetParam());
  EXPECT_EQ(streaming.Finish().status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.AwaitExit(), 0) << server.standard_error();
}

INSTANTIATE_TEST_SUITE_P(Each, SignalTest, ::testing::Values(SIGTERM, SIGINT),
                         [](const auto& test) { return test.param == SIGTERM ? "Term" : "Int"; });

struct Failure {
  std::string name;
  Arguments arguments;
  int exit_code;
  std::string word;  // On the one line on stderr.
  Arguments environment = {};
};

std::ostream& operator<<(std::ostream& out, const Failure& failure) {
  return out << failure.name;
}

class CommandLineTest : public ::testing::TestWithParam<Failure> {};

TEST_P(CommandLineTest, SaysWhatIsWrongInOneLine) {
  ChildProcess server(kBinary, GetParam().arguments, GetParam().environment);
  EXPECT_EQ(server.AwaitExit(), GetParam().exit_code);
  EXPECT_EQ(server.standard_output(), "");
  const std::string error = server.standard_error();
  EXPECT_NE(error.find(GetParam().word), std::string::npos) << error;
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
}

INSTANTIATE_TEST_SUITE_P(
    Wrong, CommandLineTest,
    ::testing::Values(
        Failure{"UnknownFlag", {"--nonsense"}, 2, "nonsense"},
        Failure{"Positional", {"rerank"}, 2, "rerank"},
        Failure{"NoValue", {"--threads"}, 2, "threads"},
        Failure{"NotANumber", {"--threads=many"}, 2, "threads"},
        Failure{"Negative", {"--threads=-1"}, 2, "threads"},
        Failure{"OutOfRange", {"--packed-buffers=1"}, 2, "packed-buffers"},
        Failure{"BadBytes", {"--max-message-bytes=64MB"}, 2, "max-message-bytes"},
        Failure{
            "BytesThatOverflow", {"--max-pending-bytes=99999999999GiB"}, 2, "max-pending-bytes"},
        Failure{"BadDuration", {"--drain-delay=soon"}, 2, "drain-delay"},
        Failure{"NegativeDuration", {"--drain-delay=-1s"}, 2, "drain-delay"},
        Failure{"BadChoice", {"--backend=tpu"}, 2, "backend"},
        Failure{"BadAddress", {"--listen=nowhere"}, 2, "listen"},
        Failure{"BadPort", {"--listen=127.0.0.1:70000"}, 2, "listen"},
        Failure{"Twice", {"--threads=1", "--threads=2"}, 2, "threads"},
        Failure{"NoMessageFits", {"--max-pending-bytes=1MiB"}, 2, "max-pending-bytes"},
        Failure{"BufferTooSmall", {"--packed-buffer-bytes=1MiB"}, 2, "packed-buffer-bytes"},
        Failure{"BadEnvironment", {}, 2, "MAXSIMD_THREADS", {"MAXSIMD_THREADS=x"}},
        Failure{"BadEnvironmentBesideAGoodFlag",
                {"--threads=1"},
                2,
                "MAXSIMD_THREADS",
                {"MAXSIMD_THREADS=x"}},
        Failure{"NoConfigFile", {"--config=/nonexistent/maxsimd.toml"}, 1, "/nonexistent"},
        Failure{"NoConfigFileOfTheEnvironment",
                {},
                1,
                "/nonexistent",
                {"MAXSIMD_CONFIG=/nonexistent/maxsimd.toml"}},
        Failure{"AddressElsewhere",
                {"--listen=192.0.2.1:0", "--max-message-bytes=4MiB"},
                1,
                "192.0.2.1"},
        Failure{"SocketInNoFolder",
                {"--listen=unix:/nonexistent/socket", "--max-message-bytes=4MiB"},
                1,
                "/nonexistent/socket"}),
    [](const auto& test) { return test.param.name; });

class ProcessTest : public ::testing::Test {
 protected:
  // A path of this test's own.
  std::string Path(const std::string& suffix) const {
    return absl::StrCat("/tmp/maxsimd-test-", getpid(), suffix);
  }
};

TEST_F(ProcessTest, ABusyPortIsOneClearLine) {
  ChildProcess first(kBinary, Small());
  const std::string address = first.AwaitAddress();
  ASSERT_NE(address, "");
  ChildProcess second(kBinary, {"--listen=" + address, "--max-message-bytes=4MiB"});
  EXPECT_EQ(second.AwaitExit(), 1);
  EXPECT_TRUE(absl::StrContains(second.standard_error(), address)) << second.standard_error();
  EXPECT_TRUE(absl::StrContains(second.standard_error(), "in use"));
  const std::string error = second.standard_error();
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
}

TEST_F(ProcessTest, ABusyUnixSocketIsRefusedAndAStaleOneTakenOver) {
  const std::string listen = "--listen=unix:" + Path(".sock");
  const Arguments arguments = {listen, "--max-message-bytes=4MiB", "--drain-delay=0"};
  ChildProcess first(kBinary, arguments);
  const std::string address = first.AwaitAddress();
  ASSERT_EQ(address, "unix:" + Path(".sock"));
  ChildProcess second(kBinary, arguments);
  EXPECT_EQ(second.AwaitExit(), 1);
  EXPECT_TRUE(Exchange(ConnectTo(address), kRerankMethod, {ToBuffer(MakeRequest({}))}).status.ok());
  first.Signal(SIGKILL);
  EXPECT_EQ(first.AwaitExit(), -SIGKILL);
  ChildProcess third(kBinary, arguments);
  ASSERT_EQ(third.AwaitAddress(), address);
  EXPECT_TRUE(Exchange(ConnectTo(address), kRerankMethod, {ToBuffer(MakeRequest({}))}).status.ok());
  third.Signal(SIGTERM);
  EXPECT_EQ(third.AwaitExit(), 0);
  unlink(Path(".sock").c_str());
}

TEST_F(ProcessTest, FlagBeatsEnvironmentBeatsFile) {
  const std::string file = Path(".toml");
  std::ofstream(file) << "threads = 1\nlog-format = \"json\"\nmax-batch-delay = \"1ms\"\n"
                      << "max-message-bytes = \"8MiB\"\n";
  ChildProcess server(
      kBinary,
      {"--config=" + file, "--listen=127.0.0.1:0", "--max-message-bytes=4MiB", "--drain-delay=0"},
      {"MAXSIMD_MAX_BATCH_DELAY=2ms", "MAXSIMD_MAX_MESSAGE_BYTES=16MiB"});
  ASSERT_NE(server.AwaitLine("listening on"), "");
  EXPECT_NE(server.AwaitLine("\"message\":\"threads = 1\""), "");
  EXPECT_NE(server.AwaitLine("max-batch-delay = 2ms"), "");
  EXPECT_NE(server.AwaitLine("max-message-bytes = 4194304"), "");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.AwaitExit(), 0);
  std::remove(file.c_str());
}

TEST_F(ProcessTest, AnUnknownOptionInTheFileIsWrongUsage) {
  const std::string file = Path(".toml");
  std::ofstream(file) << "thread = 1\n";
  ChildProcess server(kBinary, {"--config=" + file});
  EXPECT_EQ(server.AwaitExit(), 2);
  EXPECT_TRUE(absl::StrContains(server.standard_error(), "thread")) << server.standard_error();
  std::remove(file.c_str());
}

TEST_F(ProcessTest, HelpListsEveryFlag) {
  ChildProcess server(kBinary, {"--help"});
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_EQ(server.standard_error(), "");
  for (const char* flag :
       {"--listen", "--backend", "--devices", "--threads", "--max-batch-tokens",
        "--max-batch-delay", "--packed-buffers", "--packed-buffer-bytes", "--max-message-bytes",
        "--max-pending-bytes", "--stream-idle-timeout", "--drain-delay", "--shutdown-grace",
        "--log-level", "--log-format", "--config", "--version"}) {
    EXPECT_TRUE(absl::StrContains(server.standard_output(), flag)) << flag;
  }
}

TEST_F(ProcessTest, VersionIsOneLine) {
  ChildProcess server(kBinary, {"--version"});
  EXPECT_EQ(server.AwaitExit(), 0);
  EXPECT_TRUE(absl::StartsWith(server.standard_output(), "maxsimd "));
  EXPECT_EQ(server.standard_error(), "");
}

}  // namespace
}  // namespace maxsimd
