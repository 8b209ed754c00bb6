// The client library: scores a candidate set of any size over a channel.
//
//   RerankClient client(grpc::CreateChannel("127.0.0.1:50051",
//   grpc::InsecureChannelCredentials())); absl::StatusOr<RerankResult> result =
//   client.Rerank(input, {.timeout = absl::Seconds(10)});
//
// What fits one small message goes as Rerank, more as RerankStream in chunks of about 1 MiB that
// keep the server's limits (chunk_plan.h says how), scores coming in while documents go out.  The
// result is the same however the work was cut.  The limits are asked for once.
//
// Retries: a call that failed with what a repetition may cure is repeated (retry_policy.h), as a
// whole, within the timeout; an error that a caller sees is the last attempt's.
//
// Errors: the server's status as it came.  InvalidArgument also where the input's own sizes
//         contradict each other, ResourceExhausted where one document can't fit the server's limits
//         (nothing is sent then), Internal where the server's answer is not what was asked for.
// Threads: all methods may be called at the same time.
#ifndef MAXSIMD_CLIENT_RERANK_CLIENT_H_
#define MAXSIMD_CLIENT_RERANK_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include <grpcpp/channel.h>

#include "client/rerank_types.h"
#include "client/retry_policy.h"

namespace maxsimd {

// Time and chance as the client sees them; tests put their own.
struct ClientEnvironment {
  std::function<absl::Time()> now;
  std::function<void(absl::Duration)> sleep;
  std::function<double()> chance;  // In [0, 1); called by several threads.

  static ClientEnvironment Real();
};

// Of grpc.health.v1.
enum class ServingStatus { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

class RerankClient {
 public:
  explicit RerankClient(std::shared_ptr<grpc::Channel> channel, RetryPolicy retry_policy = {},
                        ClientEnvironment environment = ClientEnvironment::Real());
  ~RerankClient();

  absl::StatusOr<RerankResult> Rerank(const RerankInput& input, const CallOptions& options);

  // As the server says now; also renews the limits that Rerank keeps to.
  absl::StatusOr<v1::GetServerInfoResponse> Info(const CallOptions& options);

  // Not repeated on failure: what it says is about now.
  absl::StatusOr<ServingStatus> Health(const std::string& service, const CallOptions& options);

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_RERANK_CLIENT_H_
