#include "server/server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "spdlog/spdlog.h"

#include "kernels/create_scorer.h"
#include "kernels/status_macros.h"
#include "server/grpc_arguments.h"
#include "server/sizing.h"

namespace maxsimd {
namespace {

constexpr absl::Duration kLinger = absl::Milliseconds(100);  // A round trip and more.

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options) {
  ScorerOptions scorer_options;
  scorer_options.backend = options.backend;
  scorer_options.devices = options.devices;
  scorer_options.threads = options.threads;
  std::string fallback_reason;
  ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Scorer>> scorers,
                   CreateScorers(scorer_options, &fallback_reason));
  absl::StatusOr<std::unique_ptr<Server>> server = Start(options, std::move(scorers));
  if (server.ok() && !fallback_reason.empty()) {
    spdlog::info("backend auto is the CPU: {}", fallback_reason);
  }
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const Options& options, std::vector<std::unique_ptr<Scorer>> scorers) {
  std::unique_ptr<Server> server(new Server(options, std::move(scorers)));
  RETURN_IF_ERROR(server->CreateBatcher());
  RETURN_IF_ERROR(server->WarmUp());
  RETURN_IF_ERROR(server->Listen());
  return server;
}

Server::Server(const Options& options, std::vector<std::unique_ptr<Scorer>> scorers)
    : options_(options),
      scorers_(std::move(scorers)),
      admission_({static_cast<size_t>(options.max_pending_calls), options.max_pending_bytes}),
      registry_(TickFor(options)) {}

Server::~Server() {
  if (grpc_ == nullptr) return;
  registry_.RefuseNewCalls();
  registry_.AbortAll(absl::UnavailableError("the server is stopping"));
  grpc_->Shutdown(std::chrono::system_clock::now());
  grpc_->Wait();
}

absl::Status Server::CreateBatcher() {
  environment_.limits = LimitsFor(options_);
  ASSIGN_OR_RETURN(const BatchLimits batch_limits,
                   BatchLimitsFor(options_, environment_.limits, *scorers_.front()));
  environment_.unit_limits.max_multiply_adds = batch_limits.max_multiply_adds;
  environment_.stream_idle_timeout = options_.stream_idle_timeout;
  std::vector<Scorer*> scorers;
  for (const std::unique_ptr<Scorer>& scorer : scorers_) scorers.push_back(scorer.get());
  ASSIGN_OR_RETURN(batcher_, Batcher::Create(batch_limits, std::move(scorers),
                                             [this](int scorer, const absl::Status& status) {
                                               OnDeviceLost(scorer, status);
                                             }));
  environment_.batcher = batcher_.get();
  environment_.admission = &admission_;
  environment_.registry = &registry_;
  return absl::OkStatus();
}

absl::Status Server::WarmUp() {
  for (const std::unique_ptr<Scorer>& scorer : scorers_) {
    const size_t pitch = scorer->RowPitchBytes(ElementType::kFloat32, 1);
    ASSIGN_OR_RETURN(const PackedBuffer rows, scorer->AllocatePackedBuffer(pitch));
    const float one = 1;
    std::memcpy(rows.data(), &one, sizeof(one));
    const DocumentRows document{0, 1};
    DocumentScore score;
    QueryGroup group;
    group.query.tokens = 1;
    group.query.dim = 1;
    group.query.data = reinterpret_cast<const std::byte*>(&one);
    group.rows = rows.data();
    group.row_pitch_bytes = pitch;
    group.row_count = 1;
    group.documents = absl::MakeConstSpan(&document, 1);
    group.scores = absl::MakeSpan(&score, 1);
    RETURN_IF_ERROR(
        scorer->Score({absl::MakeConstSpan(rows.data(), pitch), absl::MakeSpan(&group, 1)})
            .status());
    if (score.status != DocumentStatus::kScored || score.score != 1) {
      return absl::InternalError(absl::StrCat("backend ", scorer->backend(),
                                              ": the warm-up score is ", score.score, ", not 1"));
    }
  }
  return absl::OkStatus();
}

absl::Status Server::Listen() {
  calls_ = std::make_unique<RerankCalls>(environment_);
  info_ = std::make_unique<InfoService>(MakeServerInfo(environment_.limits, scorers_));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetArguments(options_, builder);
  builder.RegisterCallbackGenericService(calls_.get());
  builder.RegisterService(info_.get());
  std::vector<int> ports(options_.listen.size(), 0);
  for (size_t i = 0; i < options_.listen.size(); ++i) {
    RETURN_IF_ERROR(CheckNotInUse(options_.listen[i]));
    builder.AddListeningPort(options_.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  grpc_ = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& address = options_.listen[i];
    if (grpc_ == nullptr && ports[i] == 0) {
      return absl::UnavailableError(absl::StrCat("--listen=", address,
                                                 ": the address cannot be bound: it is in use, "
                                                 "doesn't exist here, or is not permitted"));
    }
    addresses_.push_back(absl::StartsWith(address, "unix:")
                             ? address
                             : absl::StrCat(address.substr(0, address.rfind(':') + 1), ports[i]));
  }
  if (grpc_ == nullptr) return absl::InternalError("gRPC did not start");
  SetServing(true);
  return absl::OkStatus();
}

void Server::LogStart() const {
  spdlog::info("maxsimd {}, backend {}", MAXSIMD_VERSION, scorers_.front()->backend());
  for (const std::unique_ptr<Scorer>& scorer : scorers_) {
    for (const std::string& device : scorer->devices()) spdlog::info("device: {}", device);
  }
  for (const auto& [name, value] : Describe(options_)) spdlog::info("{} = {}", name, value);
  for (const std::string& address : addresses_) spdlog::info("listening on {}", address);
}

void Server::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = grpc_->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus(v1::RerankService::service_full_name(), serving);
}

void Server::OnDeviceLost(int scorer, const absl::Status& status) {
  spdlog::error("device {} is lost: {}", scorer, status.ToString());
  MutexLock lock(&mutex_);
  if (++devices_lost_ < scorers_.size()) return;
  device_lost_ = status;
  changed_.NotifyAll();
}

void Server::RequestDrain() {
  MutexLock lock(&mutex_);
  ++drain_requests_;
  changed_.NotifyAll();
}

void Server::WaitForDrainRequests(int requests, absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (drain_requests_ < requests && device_lost_.ok() && absl::Now() < deadline) {
    changed_.WaitUntil(&mutex_, deadline);
  }
}

absl::Status Server::Run() {
  WaitForDrainRequests(1, absl::InfiniteFuture());
  SetServing(false);
  spdlog::info("draining: new calls are served for {}, those in flight may take {} more",
               absl::FormatDuration(options_.drain_delay),
               absl::FormatDuration(options_.shutdown_grace));
  WaitForDrainRequests(2, absl::Now() + options_.drain_delay);
  registry_.RefuseNewCalls();
  FinishCallsInFlight();
  // The last answers are with the kernel; a peer that has not fetched them would lose them to the
  // reset that a request in the receive buffer turns the close into.
  absl::SleepFor(kLinger);
  MutexLock lock(&mutex_);
  return device_lost_;
}

void Server::FinishCallsInFlight() {
  const absl::Time deadline = absl::Now() + options_.shutdown_grace;
  const absl::Duration look = absl::Milliseconds(100);  // For a second request.
  while (!registry_.WaitUntilEmpty(std::min(deadline, absl::Now() + look)) &&
         absl::Now() < deadline) {
    MutexLock lock(&mutex_);
    if (drain_requests_ > 1 || !device_lost_.ok()) break;
  }
  if (const size_t left = registry_.size(); left > 0) {
    spdlog::warn("{} calls are cut off", left);
    registry_.AbortAll(absl::UnavailableError("the server is stopping"));
    registry_.WaitUntilEmpty(absl::Now() + absl::Seconds(1));
  }
}

}  // namespace maxsimd
