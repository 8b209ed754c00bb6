// grpc.health.v1 from the client's side; its two small messages are read by hand, as grpc++ ships
// no .proto of it.
#ifndef MAXSIMD_TESTS_TESTING_HEALTH_CLIENT_H_
#define MAXSIMD_TESTS_TESTING_HEALTH_CLIENT_H_

#include <cstddef>
#include <memory>
#include <string>

#include "grpcpp/channel.h"

#include "tests/testing/raw_call.h"

namespace maxsimd {

// The first four are the protocol's.
enum class Health {
  kUnknown = 0,
  kServing = 1,
  kNotServing = 2,
  kServiceUnknown = 3,
  kNotFound,
  kFailed
};

// What Check says; kNotFound is the status NOT_FOUND.
Health CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);

class HealthWatch {
 public:
  HealthWatch(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);
  // Waits for the next change; the first is how it is.
  Health Next();

 private:
  RawCall call_;
  size_t seen_ = 0;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_HEALTH_CLIENT_H_
