// Memory that is mapped, in huge pages where the system has them, and touched before it is
// returned.
//
// Errors: ResourceExhausted, naming the size.
#ifndef MAXSIMD_KERNELS_CPU_RESIDENT_MEMORY_H_
#define MAXSIMD_KERNELS_CPU_RESIDENT_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"

#include "kernels/packed_buffer.h"

namespace maxsimd {

absl::StatusOr<PackedBuffer> AllocateResidentMemory(size_t size_bytes);

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_RESIDENT_MEMORY_H_
