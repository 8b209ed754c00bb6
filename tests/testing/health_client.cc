#include "tests/testing/health_client.h"

namespace maxsimd {
namespace {

// HealthCheckRequest: string service = 1.
grpc::ByteBuffer Request(const std::string& service) {
  std::string bytes;
  if (!service.empty()) bytes = std::string("\x0a") + static_cast<char>(service.size()) + service;
  return ToBuffer(bytes);
}

// HealthCheckResponse: ServingStatus status = 1.
Health Read(const std::string& response) {
  return response.size() == 2 ? static_cast<Health>(response[1]) : Health::kUnknown;
}

}  // namespace

Health CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  RawCall call(channel, "/grpc.health.v1.Health/Check");
  if (!call.Write(Request(service))) return Health::kFailed;
  call.WritesDone();
  const bool answered = call.AwaitResponses(1);
  const std::string response = answered ? call.responses().front() : "";
  const grpc::Status status = call.AwaitStatus();
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return Health::kNotFound;
  return status.ok() ? Read(response) : Health::kFailed;
}

HealthWatch::HealthWatch(const std::shared_ptr<grpc::Channel>& channel, const std::string& service)
    : call_(channel, "/grpc.health.v1.Health/Watch") {
  call_.Write(Request(service));
  call_.WritesDone();
}

Health HealthWatch::Next() {
  if (!call_.AwaitResponses(++seen_)) return Health::kFailed;
  return Read(call_.responses()[seen_ - 1]);
}

}  // namespace maxsimd
