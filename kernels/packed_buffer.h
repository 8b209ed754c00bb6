// A buffer that documents are packed into: allocated once at start, by the backend that reads it.
//
// Owns its memory; the backend says how it is freed (a CUDA backend's memory is page-locked).
// The memory is resident from the start: nobody pays for a page's first touch during a call.
#ifndef MAXSIMD_KERNELS_PACKED_BUFFER_H_
#define MAXSIMD_KERNELS_PACKED_BUFFER_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace maxsimd {

class PackedBuffer {
 public:
  using Deleter = std::function<void(std::byte*)>;

  PackedBuffer() = default;
  PackedBuffer(std::byte* data, size_t size_bytes, Deleter deleter)
      : data_(data, std::move(deleter)), size_bytes_(size_bytes) {}

  std::byte* data() const { return data_.get(); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  std::unique_ptr<std::byte[], Deleter> data_{nullptr, [](std::byte*) {}};
  size_t size_bytes_ = 0;
};

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_PACKED_BUFFER_H_
