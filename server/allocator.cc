#include "server/allocator.h"

#include <cstdlib>  // Any header of the C library says which one it is.

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace maxsimd {

void KeepFreedMemory() {
#ifdef __GLIBC__
  // What one heap may keep: a largest message of 64 MiB that has been copied, and the next one.
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
  // Above it a block is a mapping of its own, always fresh; glibc takes no more than this.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  // Each heap keeps its own, and by default there are eight per core.
  mallopt(M_ARENA_MAX, 4);
#endif
}

}  // namespace maxsimd
