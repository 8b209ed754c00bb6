// A whole server in this process, on a loopback port of its own, served by a thread until the test
// ends.
#ifndef MAXSIMD_TESTS_TESTING_TEST_SERVER_H_
#define MAXSIMD_TESTS_TESTING_TEST_SERVER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/channel.h"

#include "kernels/mutex.h"
#include "server/options.h"
#include "server/server.h"
#include "tests/testing/gated_scorer.h"

namespace maxsimd {

// Small buffers (a start takes milliseconds), no drain delay.
Options TestOptions();

// A connection of its own to `address`.
std::shared_ptr<grpc::Channel> ConnectTo(const std::string& address);

class TestServer {
 public:
  // Scores on the CPU, behind gate().
  explicit TestServer(const Options& options = TestOptions());
  // Cuts off what is still in flight.
  ~TestServer();

  Server& server() { return *server_; }
  Gate& gate() { return *gate_; }
  const std::string& address() const { return server_->addresses().front(); }
  // The same connection each time; ConnectTo makes others.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // Whether no call is left, soon, and nothing that a call held.
  bool BecomesIdle();

  // What Run returned; the test must have asked for the end.
  absl::Status AwaitEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_TEST_SERVER_H_
