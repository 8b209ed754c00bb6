#include "tests/testing/test_server.h"

#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"

#include "tests/testing/patience.h"

namespace maxsimd {
namespace {

std::unique_ptr<Server> StartServer(const Options& options, std::shared_ptr<Gate> gate) {
  spdlog::set_level(spdlog::level::off);
  std::vector<std::unique_ptr<Scorer>> scorers;
  scorers.push_back(std::make_unique<GatedScorer>(std::move(gate)));
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, std::move(scorers));
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    std::abort();  // Nothing in the test could go on.
  }
  return *std::move(server);
}

}  // namespace

Options TestOptions() {
  Options options;
  options.listen = {"127.0.0.1:0"};
  options.backend = "cpu";
  options.threads = 1;
  options.packed_buffers = 2;
  options.max_message_bytes = uint64_t{4} << 20;
  options.drain_delay = absl::ZeroDuration();
  options.shutdown_grace = kPatience;
  return options;
}

std::shared_ptr<grpc::Channel> ConnectTo(const std::string& address) {
  static std::atomic<int> connections{0};
  grpc::ChannelArguments arguments;
  // Channels with equal arguments would share one connection.
  arguments.SetInt("maxsimd.test.connection", connections++);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

TestServer::TestServer(const Options& options)
    : server_(StartServer(options, gate_)), channel_(ConnectTo(server_->addresses().front())) {
  thread_ = std::thread([this] {
    const absl::Status result = server_->Run();
    MutexLock lock(&mutex_);
    result_ = result;
    ended_ = true;
    changed_.NotifyAll();
  });
}

TestServer::~TestServer() {
  gate_->Release();
  server_->RequestDrain();
  server_->RequestDrain();
  thread_.join();
}

bool TestServer::BecomesIdle() {
  return Eventually([this] {
    const Admission::Usage usage = server_->usage();
    return usage.calls == 0 && usage.bytes == 0 && usage.multiply_adds == 0 && usage.waiting == 0 &&
           server_->lanes() == 0;
  });
}

absl::Status TestServer::AwaitEnd() {
  const absl::Time deadline = absl::Now() + kPatience;
  MutexLock lock(&mutex_);
  while (!ended_ && absl::Now() < deadline) changed_.WaitUntil(&mutex_, deadline);
  return ended_ ? result_ : absl::DeadlineExceededError("the server did not end");
}

bool TestServer::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

}  // namespace maxsimd
