#include "kernels/cpu/resident_memory.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include <sys/mman.h>

namespace maxsimd {

absl::StatusOr<PackedBuffer> AllocateResidentMemory(size_t size_bytes) {
  if (size_bytes == 0) return PackedBuffer();
  void* const memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("packed buffer of ", size_bytes, " bytes: ", std::strerror(errno)));
  }
  madvise(memory, size_bytes, MADV_HUGEPAGE);  // A wish: without it there are only more TLB misses.
  std::memset(memory, 0, size_bytes);
  return PackedBuffer(static_cast<std::byte*>(memory), size_bytes,
                      [size_bytes](std::byte* data) { munmap(data, size_bytes); });
}

}  // namespace maxsimd
