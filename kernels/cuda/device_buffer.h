// Owners of device memory and of page-locked host memory.  They grow, dropping their contents; they
// never shrink.
//
// Errors: as cuda_status.h.  Threads: one at a time.
#ifndef MAXSIMD_KERNELS_CUDA_DEVICE_BUFFER_H_
#define MAXSIMD_KERNELS_CUDA_DEVICE_BUFFER_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <cuda_runtime.h>

#include "kernels/cuda/cuda_status.h"

namespace maxsimd::cuda {

struct DeviceMemory {
  static constexpr const char* kName = "device memory";
  static cudaError_t Allocate(void** data, size_t size) { return cudaMalloc(data, size); }
  static void Free(void* data) { cudaFree(data); }
};

struct PinnedMemory {
  static constexpr const char* kName = "page-locked memory";
  static cudaError_t Allocate(void** data, size_t size) {
    return cudaHostAlloc(data, size, cudaHostAllocPortable);
  }
  static void Free(void* data) { cudaFreeHost(data); }
};

template <class Memory>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) Memory::Free(data_);
  }

  // Makes room for `size` bytes; grows by half at least, so that growing is rare.
  absl::Status Reserve(size_t size) {
    if (size <= size_) return absl::OkStatus();
    if (size_ != 0 && size < size_ + size_ / 2) size = size_ + size_ / 2;
    *this = Buffer();
    const cudaError_t error = Memory::Allocate(&data_, size);
    if (error != cudaSuccess) {
      data_ = nullptr;
      cudaGetLastError();  // It is told; later checks must not find it.
      return ToStatus(error, absl::StrCat(Memory::kName, " of ", size, " bytes"));
    }
    size_ = size;
    return absl::OkStatus();
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

using DeviceBuffer = Buffer<DeviceMemory>;
using PinnedBuffer = Buffer<PinnedMemory>;

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_DEVICE_BUFFER_H_
