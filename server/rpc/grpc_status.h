// The only place where an absl::Status becomes a grpc::Status.  Both count the canonical codes
// alike.
#ifndef MAXSIMD_SERVER_RPC_GRPC_STATUS_H_
#define MAXSIMD_SERVER_RPC_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace maxsimd {

inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_GRPC_STATUS_H_
