// A server of the contract for tests of clients: over a real socket, generated code, one plain loop
// of doubles, and misbehaviour on demand.
//
// Threads: all methods may be called while calls run.  The destructor ends calls that hang.
#ifndef MAXSIMD_TESTS_CLIENT_FAKE_SERVER_H_
#define MAXSIMD_TESTS_CLIENT_FAKE_SERVER_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include "kernels/mutex.h"
#include "maxsimd/v1/rerank.grpc.pb.h"

namespace maxsimd {

// What one call does instead of answering rightly.
struct Misbehaviour {
  // Ends the call with this, if not OK, after `results_before` results.
  grpc::Status status = {};
  std::optional<std::string> pushback = {};  // As the trailer.
  size_t results_before = 0;
  bool before_reading = false;  // A stream ends before its messages are read.

  bool hang = false;           // Answers nothing until the client gives up or the server ends.
  bool drop_last = false;      // One result less.
  bool repeat_last = false;    // The last result twice.
  bool unknown_index = false;  // An index that was never sent.
  bool no_summary = false;
  float score_error = 0;  // Added to every score.
};

struct SeenCall {
  bool stream = false;
  std::vector<v1::Documents> messages;
  std::vector<size_t> message_bytes;
  v1::RerankRequest start;  // Without the documents.
};

class FakeServer : public v1::RerankService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  std::string address() const { return address_; }
  std::shared_ptr<grpc::Channel> channel() const;

  void set_limits(const v1::Limits& limits);
  // The next calls of Rerank and RerankStream misbehave like these, in turn; then all are right.
  void Misbehave(std::vector<Misbehaviour> calls);
  void set_info_misbehaviour(std::vector<Misbehaviour> calls);
  std::vector<SeenCall> seen_calls() const;
  int info_calls() const;
  void set_serving(bool serving);

  grpc::Status Rerank(grpc::ServerContext* context, const v1::RerankRequest* request,
                      grpc::ServerWriter<v1::RerankResponse>* writer) override;
  grpc::Status RerankStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::RerankResponse, v1::RerankStreamRequest>* stream) override;
  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::GetServerInfoResponse* response) override;

 private:
  Misbehaviour NextMisbehaviour(std::deque<Misbehaviour>* from);
  grpc::Status Fail(grpc::ServerContext* context, const Misbehaviour& how);
  void Record(SeenCall call);

  mutable Mutex mutex_;
  v1::Limits limits_ ABSL_GUARDED_BY(mutex_);
  std::deque<Misbehaviour> misbehaviours_ ABSL_GUARDED_BY(mutex_);
  std::deque<Misbehaviour> info_misbehaviours_ ABSL_GUARDED_BY(mutex_);
  std::vector<SeenCall> seen_calls_ ABSL_GUARDED_BY(mutex_);
  int info_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar ended_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Scores as the contract has them, computed in double; used by the fake and to check against.
std::vector<v1::ScoredDocument> PlainScores(const v1::Query& query, const v1::Documents& documents,
                                            const v1::RerankOptions& options);

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_CLIENT_FAKE_SERVER_H_
