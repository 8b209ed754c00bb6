// grpc.health.v1's two messages, written by hand: the distribution ships no generated code of them.
//
//   HealthCheckRequest  { string service = 1; }
//   HealthCheckResponse { ServingStatus status = 1; }
//
// Source: https://github.com/grpc/grpc/blob/master/doc/health-checking.md.
#ifndef MAXSIMD_CLIENT_HEALTH_H_
#define MAXSIMD_CLIENT_HEALTH_H_

#include <string>

#include "absl/status/statusor.h"
#include <grpcpp/support/byte_buffer.h>

#include "client/rerank_client.h"

namespace maxsimd {

inline constexpr char kHealthCheckMethod[] = "/grpc.health.v1.Health/Check";

grpc::ByteBuffer EncodeHealthRequest(const std::string& service);

// Internal where the bytes are no HealthCheckResponse.
absl::StatusOr<ServingStatus> DecodeHealthResponse(grpc::ByteBuffer* response);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_HEALTH_H_
