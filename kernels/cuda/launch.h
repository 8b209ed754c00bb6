// What the host hands to the kernels: plain structs in device memory, and the launchers.
//
//   maximum[i] = max over rows j of an item of  <q_i, d_j>;   score = sum_i w_i * f_i * maximum[i]
//
// where f_i is 1, or 1 / |q_i| with normalisation (the row's own norm divides inside the kernel).
// An item is a run of rows of one document times one chunk of the query's tokens.  A document in
// one item is finished by the block that scores it; the items of a split document leave their
// maxima in device memory, and the last to arrive combines them: maxima are exact, so in any order.
//
// Launches that may overlap (TileConfig::overlaps_previous) must not share counters, tickets or
// partial results with the launch before.
//
// Shapes: documents' rows as Scorer has them, 16-byte aligned, the pitch a multiple of 16, or of 4
// where it is less than 16.  The query is an image in the kernel's layout: query_image.h.
// Errors: launchers return what cudaGetLastError says.
#ifndef MAXSIMD_KERNELS_CUDA_LAUNCH_H_
#define MAXSIMD_KERNELS_CUDA_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include <cuda.h>
#include <cuda_runtime.h>

#include "kernels/cuda/tile_config.h"

namespace maxsimd::cuda {

constexpr uint32_t kNotSplit = ~0u;

// A ticket counts items in its low half and those with a non-finite similarity in its high half.
constexpr uint32_t kTicketItemBits = 16;
constexpr uint32_t kMaxItemsOfDocument = (1u << kTicketItemBits) - 1;

// Blocks of different query chunks take items from counters of their own; one more counts blocks
// that are done.  4,096 tokens in chunks of 64.
constexpr uint32_t kMaxChunks = 64;
constexpr uint32_t kCounters = kMaxChunks + 1;

struct GroupParams {
  const std::byte* rows;
  uint64_t row_pitch_bytes;
  const std::byte* query;
  const float* weights;  // [query_tokens].
  const float* factors;  // [query_tokens], or null: all 1.
  double divisor;
  uint64_t first_match;  // Of the group's first document in LaunchParams::matches.
  uint32_t first_document;
  uint32_t query_tokens;
  uint32_t dim;
  uint32_t normalize;
  uint32_t return_matches;
  // Document row 0 of this group in the tensor map's rows; only where there is a map.
  uint32_t tensor_row;
};

struct WorkItem {
  uint64_t first_row;
  uint32_t rows;
  uint32_t group;
  uint32_t document;     // In LaunchParams::scores.
  uint32_t first_token;  // The item's first row within the document.
  uint32_t split;        // In LaunchParams::splits, or kNotSplit.
  uint32_t slot;         // Of the item's partial maxima, for the document's first chunk.
  uint16_t siblings;     // Items of the document, with this one.
  uint16_t
      chunk;  // Of query tokens; where blocks keep to one chunk it is the block's, and not here.
};

struct SplitDocument {
  uint32_t first_slot;  // Slot of (part, chunk): first_slot + part * chunks + chunk.
  uint32_t parts;
  uint32_t chunks;
};

struct ScoreOut {
  float score;
  uint32_t status;  // As DocumentStatus.
};

struct MatchOut {
  uint32_t document_token;
  float similarity;
};

struct LaunchParams {
  GroupParams only_group;  // Where there is but one: it need not be fetched.
  const GroupParams* groups;
  uint32_t group_count;
  const WorkItem* items;
  uint32_t item_count;
  const SplitDocument* splits;
  uint32_t* tickets;       // [splits]; 0 between launches.
  float* partial_maxima;   // [slots, chunk tokens].
  uint32_t* partial_rows;  // [slots, chunk tokens]; used with matches only.
  uint32_t* counters;      // [kCounters]; 0 between launches.
  ScoreOut* scores;
  MatchOut* matches;
};

// The Hopper kernels' view of the rows: all groups of a launch share the maps.
struct TensorMaps {
  CUtensorMap of_rows[kBoxes];  // Boxes of kBoxUnit, 2 * kBoxUnit, ... rows, up to a whole tile's.
};

cudaError_t LaunchGeneric(const TileConfig& config, const LaunchParams& params, uint32_t blocks,
                          cudaStream_t stream);
cudaError_t LaunchSm90(const TileConfig& config, const LaunchParams& params, const TensorMaps& maps,
                       uint32_t blocks, cudaStream_t stream);

// Once per device, before the first launch: raises the shared-memory limits.
cudaError_t PrepareGeneric();
cudaError_t PrepareSm90();

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_LAUNCH_H_
