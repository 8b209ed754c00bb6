// grpc::Status and absl::Status: the one conversion of the client.  The codes are the same numbers.
#ifndef MAXSIMD_CLIENT_GRPC_STATUS_H_
#define MAXSIMD_CLIENT_GRPC_STATUS_H_

#include "absl/status/status.h"
#include <grpcpp/support/status.h>

namespace maxsimd {

inline absl::Status ToAbslStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_GRPC_STATUS_H_
