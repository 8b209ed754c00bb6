// How the process keeps memory that large messages have used.
//
// Threads: call once, before there are others.
#ifndef MAXSIMD_SERVER_ALLOCATOR_H_
#define MAXSIMD_SERVER_ALLOCATOR_H_

namespace maxsimd {

// A message is received into fresh slices, and glibc by default gives their memory back to the
// kernel as soon as 128 KiB of it lie free at the end of a heap: the next message then takes a page
// fault per 4 KiB, which costs more than all the rest of receiving it.  So keep it, within bounds;
// what else was tried is in tests/bench/README.md.  Does nothing where the C library isn't glibc.
void KeepFreedMemory();

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_ALLOCATOR_H_
