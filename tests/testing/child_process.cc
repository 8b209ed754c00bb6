#include "tests/testing/child_process.h"

#include <array>
#include <csignal>
#include <fstream>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/testing/patience.h"

namespace maxsimd {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const std::string& path, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) {
  int out[2];
  int error[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pipes";
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error[1], STDERR_FILENO);
  std::vector<std::string> argv = {path};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> envp = environment;
  for (char** variable = environ; *variable != nullptr; ++variable) envp.emplace_back(*variable);
  const int failure = posix_spawn(&pid_, path.c_str(), &actions, nullptr, Pointers(argv).data(),
                                  Pointers(envp).data());
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(error[1]);
  EXPECT_EQ(failure, 0) << path;
  reaped_ = failure != 0;
  MutexLock lock(&mutex_);
  out_.pipe = out[0];
  error_.pipe = error[0];
  out_.reader = std::thread([this, output = &out_] { ReadAll(output); });
  error_.reader = std::thread([this, output = &error_] { ReadAll(output); });
}

ChildProcess::~ChildProcess() {
  if (!reaped_) {
    Signal(SIGKILL);
    AwaitExit();
  }
  std::array<std::thread, 2> readers;
  {
    MutexLock lock(&mutex_);
    readers = {std::move(out_.reader), std::move(error_.reader)};
  }
  for (std::thread& reader : readers) {
    if (reader.joinable()) reader.join();
  }
}

void ChildProcess::ReadAll(Output* output) {
  int pipe = -1;
  {
    MutexLock lock(&mutex_);
    pipe = output->pipe;
  }
  std::array<char, 4096> bytes;
  ssize_t size = 0;
  while ((size = read(pipe, bytes.data(), bytes.size())) > 0) {
    MutexLock lock(&mutex_);
    output->text.append(bytes.data(), size);
    changed_.NotifyAll();
  }
  close(pipe);
  MutexLock lock(&mutex_);
  output->ended = true;
  changed_.NotifyAll();
}

std::string ChildProcess::AwaitLine(const std::string& text) {
  const absl::Time deadline = absl::Now() + kPatience;
  MutexLock lock(&mutex_);
  while (true) {
    for (const Output* output : {&out_, &error_}) {
      const size_t found = output->text.find(text);
      const size_t end = output->text.find('\n', found);
      if (found == std::string::npos || end == std::string::npos) continue;
      const size_t before = output->text.rfind('\n', found);
      const size_t begin = before == std::string::npos ? 0 : before + 1;
      return output->text.substr(begin, end - begin);
    }
    if ((out_.ended && error_.ended) || absl::Now() > deadline) return "";
    changed_.WaitUntil(&mutex_, deadline);
  }
}

std::string ChildProcess::AwaitAddress() {
  const std::string announcement = "listening on ";
  const std::string line = AwaitLine(announcement);
  const size_t found = line.find(announcement);
  return found == std::string::npos ? "" : line.substr(found + announcement.size());
}

void ChildProcess::Signal(int signal) {
  if (!reaped_) kill(pid_, signal);
}

int ChildProcess::AwaitExit() {
  if (reaped_) return exit_code_;
  const absl::Time deadline = absl::Now() + kPatience;
  {
    // Its outputs end with it.
    MutexLock lock(&mutex_);
    while (!(out_.ended && error_.ended) && absl::Now() < deadline) {
      changed_.WaitUntil(&mutex_, deadline);
    }
    if (!(out_.ended && error_.ended)) {
      ADD_FAILURE() << "the process did not end\n" << error_.text;
      kill(pid_, SIGKILL);
    }
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return exit_code_;
}

std::string ChildProcess::standard_output() const {
  MutexLock lock(&mutex_);
  return out_.text;
}

std::string ChildProcess::standard_error() const {
  MutexLock lock(&mutex_);
  return error_.text;
}

size_t ChildProcess::resident_bytes(bool peak) const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  const std::string name = peak ? "VmHWM:" : "VmRSS:";
  std::string word;
  while (status >> word) {
    size_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace maxsimd
