// A query as the kernels want it in device memory, made on the host: rows padded with zeros to
// whole atoms of 128 bytes, tokens to whole chunks.
//
//   generic: [chunk tokens][atoms * 128 bytes], row after row
//   sm90:    per chunk, per atom, per plane: [tokens][128 bytes], the 16-byte units of row r in the
//            order of unit ^ (r % 8): an image of shared memory under the 128-byte swizzle; then
//            the chunk's weights and, padded to 16 bytes, the largest magnitude of its elements
//            (only bfloat16 in chunks of 256; else 0). float32 has two planes: each element's TF32
//            part and what is left.
//
// Normalisation: rows are not divided by their norms, which would round them to the element type;
// instead 1 / norm multiplies each maximum, exactly as far as maxima go, since it is positive.
// float32 and bfloat16 rows are first scaled by a power of two, so that products with scaled
// document rows neither overflow nor vanish.
//
// Threads: all functions are thread-safe.
#ifndef MAXSIMD_KERNELS_CUDA_QUERY_IMAGE_H_
#define MAXSIMD_KERNELS_CUDA_QUERY_IMAGE_H_

#include <cstddef>

#include "kernels/cuda/tile_config.h"
#include "kernels/scorer.h"

namespace maxsimd::cuda {

// Bytes of all chunks of the query's image.
size_t QueryImageBytes(const QueryView& query, const TileConfig& config);

// Writes the image, with these weights[tokens]; with normalisation also factors[tokens], 0 where a
// row's norm is 0.
void WriteQueryImage(const QueryView& query, const TileConfig& config, const float* weights,
                     std::byte* image, float* factors);

// Weights as the kernels add them, and what divides their sum.  A mean's weights are scaled by a
// power of two to at most 1, with the divisor: otherwise products could vanish that the division
// brings back.
double WriteWeights(const QueryView& query, float* weights);

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_QUERY_IMAGE_H_
