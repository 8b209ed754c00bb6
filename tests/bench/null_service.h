// The yardstick: a server of the same contract that does nothing with what it receives.
//
// Rerank and RerankStream go to a generic reactor over ByteBuffers, as in the product, which reads
// all messages, drops them and answers with `documents` scores of 0.  With `copy` it also copies
// each message once, into memory that is warm after the first calls: what any server must do that
// has the bytes in one piece in the end.
//
// Threads: gRPC's.
#ifndef MAXSIMD_TESTS_BENCH_NULL_SERVICE_H_
#define MAXSIMD_TESTS_BENCH_NULL_SERVICE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

#include "kernels/mutex.h"

namespace maxsimd {

// Buffers to copy to, one per call at a time; the last one returned, whose pages are the warmest,
// is the first to be used again.
class WarmBuffers {
 public:
  void CopyOnce(const grpc::ByteBuffer& message) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  std::vector<std::string> free_ ABSL_GUARDED_BY(mutex_);
};

class NullService final : public grpc::CallbackGenericService {
 public:
  NullService(size_t documents, bool copy);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const bool copy_;
  WarmBuffers buffers_;
  std::vector<grpc::ByteBuffer> responses_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_BENCH_NULL_SERVICE_H_
