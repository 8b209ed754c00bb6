// Describes rows in device memory to the Hopper copy engine.
//
// A map covers rows [0, rows) from `base` as boxes of 64 columns by some rows.  Where dim is a
// multiple of 64 it has three dimensions, {64, rows, dim / 64}, so that one box can hold two atoms;
// else {dim, rows, 1}, whose columns beyond dim arrive as zeros.
//
// Errors: Internal, if the driver refuses.  Threads: thread-safe.
#ifndef MAXSIMD_KERNELS_CUDA_TENSOR_MAP_H_
#define MAXSIMD_KERNELS_CUDA_TENSOR_MAP_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile_config.h"

namespace maxsimd::cuda {

// `base`: aligned to 16 bytes, as is the pitch.
absl::StatusOr<TensorMaps> MakeTensorMaps(const std::byte* base, uint64_t rows,
                                          uint64_t pitch_bytes, uint32_t dim,
                                          const TileConfig& config);

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_TENSOR_MAP_H_
