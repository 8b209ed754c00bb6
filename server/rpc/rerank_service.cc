#include "server/rpc/rerank_service.h"

#include <string>

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

grpc::ServerUnaryReactor* InfoService::GetServerInfo(grpc::CallbackServerContext* context,
                                                     const v1::GetServerInfoRequest* /*request*/,
                                                     v1::GetServerInfoResponse* response) {
  *response = info_;
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace maxsimd
