#include "tests/client/fake_server.h"

#include <algorithm>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

namespace maxsimd {
namespace {

bool Better(const v1::ScoredDocument& a, const v1::ScoredDocument& b) {
  return a.score() != b.score() ? a.score() > b.score() : a.index() < b.index();
}

void Spoil(const Misbehaviour& how, std::vector<v1::ScoredDocument>* results) {
  if (results->empty()) return;
  if (how.drop_last) results->pop_back();
  for (v1::ScoredDocument& result : *results) result.set_score(result.score() + how.score_error);
  if (how.repeat_last) results->push_back(results->back());
  if (how.unknown_index) results->back().set_index(1'000'000);
  if (!how.status.ok()) results->resize(std::min(results->size(), how.results_before));
}

// Three results a message, so that several come.
template <typename Writer>
void WriteResults(const std::vector<v1::ScoredDocument>& results,
                  const std::optional<v1::RerankSummary>& summary, Writer* writer) {
  v1::RerankResponse response;
  for (const v1::ScoredDocument& result : results) {
    *response.add_results() = result;
    if (response.results_size() < 3) continue;
    writer->Write(response);
    response.Clear();
  }
  if (summary.has_value()) *response.mutable_summary() = *summary;
  writer->Write(response);
}

std::optional<v1::RerankSummary> Summary(const Misbehaviour& how, uint64_t documents) {
  if (how.no_summary || !how.status.ok()) return std::nullopt;
  v1::RerankSummary summary;
  summary.set_documents(documents);
  summary.mutable_timings()->set_batches(1);
  summary.mutable_timings()->mutable_total()->set_nanos(700'000'000);
  return summary;
}

}  // namespace

FakeServer::FakeServer() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  builder.SetMaxReceiveMessageSize(-1);
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeServer::~FakeServer() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    ended_.NotifyAll();
  }
  server_->Shutdown();
  server_->Wait();
}

std::shared_ptr<grpc::Channel> FakeServer::channel() const {
  return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
}

void FakeServer::set_limits(const v1::Limits& limits) {
  MutexLock lock(&mutex_);
  limits_ = limits;
}

void FakeServer::Misbehave(std::vector<Misbehaviour> calls) {
  MutexLock lock(&mutex_);
  misbehaviours_.assign(calls.begin(), calls.end());
}

void FakeServer::set_info_misbehaviour(std::vector<Misbehaviour> calls) {
  MutexLock lock(&mutex_);
  info_misbehaviours_.assign(calls.begin(), calls.end());
}

std::vector<SeenCall> FakeServer::seen_calls() const {
  MutexLock lock(&mutex_);
  return seen_calls_;
}

int FakeServer::info_calls() const {
  MutexLock lock(&mutex_);
  return info_calls_;
}

void FakeServer::set_serving(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

Misbehaviour FakeServer::NextMisbehaviour(std::deque<Misbehaviour>* from) {
  MutexLock lock(&mutex_);
  if (from->empty()) return {};
  Misbehaviour next = std::move(from->front());
  from->pop_front();
  return next;
}

grpc::Status FakeServer::Fail(grpc::ServerContext* context, const Misbehaviour& how) {
  if (how.hang) {
    MutexLock lock(&mutex_);
    while (!ending_) ended_.Wait(&mutex_);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the fake ends");
  }
  if (how.pushback.has_value()) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms", *how.pushback);
  }
  return how.status;
}

void FakeServer::Record(SeenCall call) {
  MutexLock lock(&mutex_);
  seen_calls_.push_back(std::move(call));
}

grpc::Status FakeServer::Rerank(grpc::ServerContext* context, const v1::RerankRequest* request,
                                grpc::ServerWriter<v1::RerankResponse>* writer) {
  const Misbehaviour how = NextMisbehaviour(&misbehaviours_);
  SeenCall seen{.stream = false,
                .messages = {request->documents()},
                .message_bytes = {request->ByteSizeLong()},
                .start = *request};
  seen.start.clear_documents();
  Record(std::move(seen));
  if (how.hang) return Fail(context, how);
  std::vector<v1::ScoredDocument> results =
      PlainScores(request->query(), request->documents(), request->options());
  const uint64_t documents = results.size();
  if (const uint32_t k = request->options().top_k(); k > 0) {
    std::sort(results.begin(), results.end(), Better);
    if (results.size() > k) results.resize(k);
  }
  Spoil(how, &results);
  WriteResults(results, Summary(how, documents), writer);
  return Fail(context, how);
}

grpc::Status FakeServer::RerankStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::RerankResponse, v1::RerankStreamRequest>* stream) {
  const Misbehaviour how = NextMisbehaviour(&misbehaviours_);
  if (how.hang || how.before_reading) return Fail(context, how);
  SeenCall seen{.stream = true, .messages = {}, .message_bytes = {}, .start = {}};
  std::vector<v1::ScoredDocument> held;  // Until the end, with top_k or a misbehaviour.
  uint64_t documents = 0;
  v1::RerankStreamRequest message;
  while (stream->Read(&message)) {
    if (message.has_start() != seen.messages.empty()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "start");
    }
    seen.message_bytes.push_back(message.ByteSizeLong());
    seen.messages.push_back(message.has_start() ? message.start().documents()
                                                : message.documents());
    if (message.has_start()) {
      seen.start = message.start();
      seen.start.clear_documents();
    }
    std::vector<v1::ScoredDocument> results =
        PlainScores(seen.start.query(), seen.messages.back(), seen.start.options());
    for (v1::ScoredDocument& result : results) {
      result.set_index(static_cast<uint32_t>(documents++));
      held.push_back(std::move(result));
    }
  }
  if (const uint32_t k = seen.start.options().top_k(); k > 0) {
    std::sort(held.begin(), held.end(), Better);
    if (held.size() > k) held.resize(k);
  } else {
    std::reverse(held.begin(), held.end());  // Any order is legal.
  }
  Record(std::move(seen));
  Spoil(how, &held);
  WriteResults(held, Summary(how, documents), stream);
  return Fail(context, how);
}

grpc::Status FakeServer::GetServerInfo(grpc::ServerContext* context,
                                       const v1::GetServerInfoRequest*,
                                       v1::GetServerInfoResponse* response) {
  const Misbehaviour how = NextMisbehaviour(&info_misbehaviours_);
  if (how.hang || !how.status.ok()) return Fail(context, how);
  MutexLock lock(&mutex_);
  ++info_calls_;
  response->set_version("0.0.1");
  response->set_backend("fake");
  response->add_devices("a plain loop");
  response->add_element_types(v1::ELEMENT_TYPE_FLOAT32);
  *response->mutable_limits() = limits_;
  return grpc::Status::OK;
}

}  // namespace maxsimd
