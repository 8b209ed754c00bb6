// Owners of a stream and of an event.
//
// Errors: as cuda_status.h.  Threads: one at a time.
#ifndef MAXSIMD_KERNELS_CUDA_STREAM_H_
#define MAXSIMD_KERNELS_CUDA_STREAM_H_

#include "absl/status/status.h"
#include <cuda_runtime.h>

#include "kernels/cuda/cuda_status.h"

namespace maxsimd::cuda {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  absl::Status Create() {
    return ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  // Who waits for it sleeps, rather than keeping a core busy.
  absl::Status Create() {
    return ToStatus(cudaEventCreateWithFlags(&event_, cudaEventBlockingSync), "event");
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_STREAM_H_
