// The whole server: owns everything, in the order in which it must be destroyed, and drains.
//
// Start: scorers -> packed buffers -> a warm-up batch -> the port.  Binding last is what makes
// gRPC's health service truthful: it answers SERVING from the moment the port is bound.
//
// Drain (SIGTERM): health NOT_SERVING at once; new calls are still served for drain_delay, since
// load balancers take that long to notice; then they end UNAVAILABLE while those in flight finish
// within shutdown_grace; what is left then ends UNAVAILABLE too.  No GOAWAY is sent: all that
// grpc++ 1.51.1 offers for that is Server::Shutdown, which closes the port and ends every call
// whose headers cross the GOAWAY with CANCELLED (one of eight busy callers, each time it was
// tried), which nobody retries.  A connection that closes behind the last answer is UNAVAILABLE to
// such a call.
//
// Errors: InvalidArgument     options that don't fit together (the message names the flag)
//         FailedPrecondition  no such backend or device here
//         ResourceExhausted   no memory for the packed buffers
//         Unavailable         an address cannot be bound
//
// Threads: Run is called once; RequestDrain by any thread.
#ifndef MAXSIMD_SERVER_SERVER_H_
#define MAXSIMD_SERVER_SERVER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "grpcpp/server.h"

#include "kernels/mutex.h"
#include "kernels/scorer.h"
#include "server/batching/batcher.h"
#include "server/options.h"
#include "server/rpc/admission.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/rerank_call.h"
#include "server/rpc/rerank_service.h"

namespace maxsimd {

class Server {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options);
  // The same with scorers of the caller's: what tests put slow or failing ones in with.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Options& options, std::vector<std::unique_ptr<Scorer>> scorers);
  ~Server();

  // The addresses that were bound, with the port that was chosen where the option said 0.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Says what is running, where and with which options.
  void LogStart() const;

  // Serves until RequestDrain or the loss of the last device, then drains.  Ok if it drained;
  // Unavailable if the device was lost.  The connections close with the server's destruction or the
  // process's end.
  absl::Status Run() ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts to drain; called again, stops waiting for what is in flight.
  void RequestDrain() ABSL_LOCKS_EXCLUDED(mutex_);

  BatcherCounters counters() const { return batcher_->counters(); }
  Admission::Usage usage() const { return admission_.usage(); }
  size_t lanes() const { return batcher_->lanes(); }

 private:
  Server(const Options& options, std::vector<std::unique_ptr<Scorer>> scorers);

  absl::Status WarmUp();
  absl::Status CreateBatcher();
  absl::Status Listen();
  void OnDeviceLost(int scorer, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetServing(bool serving);
  // Waits until `deadline`, or until RequestDrain has been called `requests` times.
  void WaitForDrainRequests(int requests, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishCallsInFlight();

  const Options options_;

  // Before the batcher, whose last batches may still report a lost device.
  mutable Mutex mutex_;
  CondVar changed_;
  int drain_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t devices_lost_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status device_lost_ ABSL_GUARDED_BY(mutex_);

  const std::vector<std::unique_ptr<Scorer>> scorers_;
  Admission admission_;
  std::unique_ptr<Batcher> batcher_;
  CallRegistry registry_;
  CallEnvironment environment_;
  std::unique_ptr<RerankCalls> calls_;
  std::unique_ptr<InfoService> info_;
  std::vector<std::string> addresses_;
  std::unique_ptr<grpc::Server> grpc_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_SERVER_H_
