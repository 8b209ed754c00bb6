// A connection that can break as when a client's machine dies: no stream is reset, no goodbye is
// said.
#ifndef MAXSIMD_TESTS_TESTING_BREAKABLE_CONNECTION_H_
#define MAXSIMD_TESTS_TESTING_BREAKABLE_CONNECTION_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace maxsimd {

class BreakableConnection {
 public:
  // `address` is 127.0.0.1:PORT.
  explicit BreakableConnection(const std::string& address);
  ~BreakableConnection();
  BreakableConnection(const BreakableConnection&) = delete;
  BreakableConnection& operator=(const BreakableConnection&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  void Break();

 private:
  int socket_ = -1;  // The channel has a copy of its own.
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_BREAKABLE_CONNECTION_H_
