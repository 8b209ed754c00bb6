#include "server/allocator.h"

#include <cstdlib>  // Any header of the C library says which one it is.

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace maxsimd {

void KeepFreedMemory() {
#ifdef __GLIBC__
  // What may be kept: a largest message of 64 MiB that has been copied, and the next one.
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
  // Above it a block is a mapping of its own, always fresh; glibc takes no more than this.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  // One heap: each keeps its own, and what one thread allocates another frees.  Small blocks come
  // from each thread's cache without the heap's lock.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace maxsimd
