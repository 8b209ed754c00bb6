// Memory for vectors: 64-byte aligned, grows, never shrinks, forgets its contents when it grows.
#ifndef MAXSIMD_KERNELS_CPU_ALIGNED_BUFFER_H_
#define MAXSIMD_KERNELS_CPU_ALIGNED_BUFFER_H_

#include <cstddef>
#include <memory>
#include <new>

namespace maxsimd {

template <class T>
class AlignedBuffer {
 public:
  T* data() const { return data_.get(); }

  // At least `count` elements, uninitialised; those of the call before are gone if it had fewer.
  T* Reserve(size_t count) {
    if (count > count_) {
      data_.reset();
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), kAlignment)));
      count_ = count;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  size_t count_ = 0;
};

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_ALIGNED_BUFFER_H_
