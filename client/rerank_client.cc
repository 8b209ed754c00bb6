#include "client/rerank_client.h"

#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include "client/chunk_plan.h"
#include "client/grpc_status.h"
#include "client/health.h"
#include "client/input_check.h"
#include "client/message_encoder.h"
#include "client/result_merger.h"
#include "client/score_call.h"
#include "kernels/mutex.h"
#include "kernels/status_macros.h"
#include "maxsimd/v1/rerank.grpc.pb.h"

namespace maxsimd {
namespace {

double RealChance() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(random);
}

CallMessages MessagesOf(const RerankInput& input, const PlannedCall& call) {
  return {.stream = call.stream, .count = call.chunks.size(), .message = [&](size_t index) {
            const Chunk& chunk = call.chunks[index];
            if (!call.stream) return ToByteBuffer(EncodeRequest(input, chunk), input.owner);
            return ToByteBuffer(
                index == 0 ? EncodeStreamStart(input, chunk) : EncodeStreamDocuments(input, chunk),
                input.owner);
          }};
}

RowRange DocumentsOf(const PlannedCall& call) {
  RowRange documents;
  for (const Chunk& chunk : call.chunks) {
    if (chunk.document_count == 0) continue;
    if (documents.end == 0) documents.begin = chunk.first_document;
    documents.end = chunk.first_document + chunk.document_count;
  }
  return documents;
}

CallOutcome RunInfoCall(const std::shared_ptr<grpc::Channel>& channel, absl::Duration timeout,
                        v1::GetServerInfoResponse* response) {
  grpc::ClientContext context;
  if (timeout != absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  CallOutcome outcome;
  outcome.status = v1::RerankService::NewStub(channel)->GetServerInfo(
      &context, v1::GetServerInfoRequest(), response);
  const auto& trailers = context.GetServerTrailingMetadata();
  if (const auto it = trailers.find(kPushbackTrailer); it != trailers.end()) {
    outcome.pushback.emplace(it->second.data(), it->second.size());
  }
  return outcome;
}

}  // namespace

ClientEnvironment ClientEnvironment::Real() {
  return {.now = [] { return absl::Now(); },
          .sleep =
              [](absl::Duration delay) {
                std::this_thread::sleep_for(absl::ToChronoNanoseconds(delay));
              },
          .chance = RealChance};
}

class RerankClient::State {
 public:
  State(std::shared_ptr<grpc::Channel> channel, RetryPolicy retry_policy,
        ClientEnvironment environment)
      : channel_(std::move(channel)),
        retry_policy_(retry_policy),
        environment_(std::move(environment)) {}

  absl::Time Deadline(const CallOptions& options) const {
    return environment_.now() + options.timeout;
  }

  absl::StatusOr<v1::GetServerInfoResponse> Info(absl::Time deadline) {
    v1::GetServerInfoResponse response;
    const CallOutcome outcome = WithRetries(deadline, [&](absl::Duration timeout) {
      response.Clear();
      return RunInfoCall(channel_, timeout, &response);
    });
    RETURN_IF_ERROR(ToAbslStatus(outcome.status));
    MutexLock lock(&mutex_);
    limits_ = response.limits();
    return response;
  }

  absl::StatusOr<RerankResult> Rerank(const RerankInput& input, const PlanOptions& plan,
                                      absl::Time deadline) {
    RETURN_IF_ERROR(CheckInput(input));
    ASSIGN_OR_RETURN(const v1::Limits limits, Limits(deadline));
    ASSIGN_OR_RETURN(const std::vector<PlannedCall> calls,
                     PlanCalls(LayoutOf(input), limits, StartBytes(input), plan));
    ResultMerger merger(input.options.top_k());
    for (const PlannedCall& call : calls) {
      CallOutcome outcome = WithRetries(deadline, [&](absl::Duration timeout) {
        return RunScoreCall(channel_, MessagesOf(input, call), timeout);
      });
      RETURN_IF_ERROR(ToAbslStatus(outcome.status));
      const RowRange documents = DocumentsOf(call);
      RETURN_IF_ERROR(merger.Add(documents.begin, documents.end - documents.begin,
                                 std::move(outcome.documents), outcome.summary));
    }
    return merger.Take();
  }

  absl::StatusOr<ServingStatus> Health(const std::string& service, absl::Time deadline) {
    const grpc::ByteBuffer request = EncodeHealthRequest(service);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    if (deadline != absl::InfiniteFuture()) {
      context.set_deadline(absl::ToChronoTime(absl::Now() + (deadline - environment_.now())));
    }
    Mutex mutex;
    CondVar ended;
    std::optional<grpc::Status> status;
    grpc::GenericStub(channel_).UnaryCall(&context, kHealthCheckMethod, {}, &request, &response,
                                          [&](grpc::Status result) {
                                            MutexLock lock(&mutex);
                                            status = std::move(result);
                                            ended.NotifyOne();
                                          });
    {
      MutexLock lock(&mutex);
      while (!status.has_value()) ended.Wait(&mutex);
    }
    RETURN_IF_ERROR(ToAbslStatus(*status));
    return DecodeHealthResponse(&response);
  }

 private:
  absl::StatusOr<v1::Limits> Limits(absl::Time deadline) {
    {
      MutexLock lock(&mutex_);
      if (limits_.has_value()) return *limits_;
    }
    ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info, Info(deadline));
    return info.limits();
  }

  // The last attempt's outcome.  `attempt` is given the time that is left.
  CallOutcome WithRetries(absl::Time deadline,
                          const std::function<CallOutcome(absl::Duration timeout)>& attempt) {
    for (int attempts = 1;; ++attempts) {
      CallOutcome outcome = attempt(deadline - environment_.now());
      const absl::Status status = ToAbslStatus(outcome.status);
      if (status.ok()) return outcome;
      const std::optional<absl::Duration> delay = RetryDelay(
          retry_policy_, attempts, status.code(), outcome.pushback, environment_.chance());
      // A wait that ends after the deadline would only hide why the call fails.
      if (!delay.has_value() || environment_.now() + *delay >= deadline) return outcome;
      environment_.sleep(*delay);
    }
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const RetryPolicy retry_policy_;
  const ClientEnvironment environment_;
  Mutex mutex_;
  std::optional<v1::Limits> limits_ ABSL_GUARDED_BY(mutex_);
};

RerankClient::RerankClient(std::shared_ptr<grpc::Channel> channel, RetryPolicy retry_policy,
                           ClientEnvironment environment)
    : state_(std::make_unique<State>(std::move(channel), retry_policy, std::move(environment))) {}

RerankClient::~RerankClient() = default;

absl::StatusOr<RerankResult> RerankClient::Rerank(const RerankInput& input,
                                                  const CallOptions& options) {
  return state_->Rerank(input, options.plan, state_->Deadline(options));
}

absl::StatusOr<v1::GetServerInfoResponse> RerankClient::Info(const CallOptions& options) {
  return state_->Info(state_->Deadline(options));
}

absl::StatusOr<ServingStatus> RerankClient::Health(const std::string& service,
                                                   const CallOptions& options) {
  return state_->Health(service, state_->Deadline(options));
}

}  // namespace maxsimd
