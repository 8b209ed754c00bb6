#include "server/rpc/rerank_service.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace maxsimd {
namespace {

class UnimplementedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit UnimplementedCall(const std::string& method) {
    Finish({grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("unknown method ", method)});
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* RerankCalls::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (context->method() == "/maxsimd.v1.RerankService/Rerank") {
    return RerankCall::Start(environment_, context, RerankCall::Method::kRerank);
  }
  if (context->method() == "/maxsimd.v1.RerankService/RerankStream") {
    return RerankCall::Start(environment_, context, RerankCall::Method::kRerankStream);
  }
  return new UnimplementedCall(context->method());
}

InfoService::InfoService(const v1::GetServerInfoResponse& info) {
  const grpc::Slice slice(info.SerializeAsString());
  info_ = grpc::ByteBuffer(&slice, 1);
}

grpc::ServerUnaryReactor* InfoService::GetServerInfo(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  // gRPC calls a raw handler also for a message that the resource quota reset: without a buffer.
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (request->Valid() && request->Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  }
  if (!request->Valid() || !v1::GetServerInfoRequest().ParseFromString(bytes)) {
    reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "malformed message"});
    return reactor;
  }
  *response = info_;
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace maxsimd
