// How gRPC is set up: what it may hold, what it refuses by itself, and what its log lines become.
#ifndef MAXSIMD_SERVER_GRPC_ARGUMENTS_H_
#define MAXSIMD_SERVER_GRPC_ARGUMENTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/server_builder.h"

#include "kernels/scorer.h"
#include "maxsimd/v1/rerank.pb.h"
#include "server/codec/limits.h"
#include "server/options.h"

namespace maxsimd {

void SetArguments(const Options& options, grpc::ServerBuilder& builder);

// gRPC's own log lines become debug lines of ours: what they report, a caller or our own log says.
void RouteGrpcLog();

// Unavailable if another process serves on a Unix socket: gRPC would silently take its path over.
absl::Status CheckNotInUse(const std::string& address);

v1::GetServerInfoResponse MakeServerInfo(const Limits& limits,
                                         const std::vector<std::unique_ptr<Scorer>>& scorers);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_GRPC_ARGUMENTS_H_
