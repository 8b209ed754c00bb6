// The gRPC surface: which method goes where.
//
// Rerank and RerankStream are marked generic, so that the generic service gets them from their
// headers on; GetServerInfo is a callback method over ByteBuffers, since a typed one answers a
// malformed message UNIMPLEMENTED; any other method is UNIMPLEMENTED.
// Registering the typed service as well is what makes reflection list it.
//
// Threads: gRPC's.
#ifndef MAXSIMD_SERVER_RPC_RERANK_SERVICE_H_
#define MAXSIMD_SERVER_RPC_RERANK_SERVICE_H_

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/server_callback.h"

#include "maxsimd/v1/rerank.grpc.pb.h"
#include "server/rpc/rerank_call.h"

namespace maxsimd {

class RerankCalls final : public grpc::CallbackGenericService {
 public:
  explicit RerankCalls(const CallEnvironment& environment) : environment_(environment) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const CallEnvironment& environment_;
};

class InfoService final
    : public v1::RerankService::WithGenericMethod_Rerank<
          v1::RerankService::WithGenericMethod_RerankStream<
              v1::RerankService::WithRawCallbackMethod_GetServerInfo<v1::RerankService::Service>>> {
 public:
  explicit InfoService(const v1::GetServerInfoResponse& info);

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;

 private:
  grpc::ByteBuffer info_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_RERANK_SERVICE_H_
