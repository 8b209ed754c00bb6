// Which kernel scores a query group, and with what tiles: a function of the group's own type, dim,
// query length and options, never of its documents, so that a score's bits don't depend on what
// shares a batch.  Pure.
//
// Bits: return_matches must not change a score, so both of its variants add in the same order: one
// instruction family (wgmma or mma.sync) for a given type, dim, query length and normalisation.
#ifndef MAXSIMD_KERNELS_CUDA_TILE_CONFIG_H_
#define MAXSIMD_KERNELS_CUDA_TILE_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "kernels/element_type.h"

namespace maxsimd::cuda {

// Document rows of a tile, in both kernels: wgmma's M; four warps' rows of mma.sync.
constexpr uint32_t kTileRows = 64;
// Rows come in boxes of a multiple of 8 rows, after which the swizzle's pattern repeats.
constexpr uint32_t kBoxUnit = 8;
constexpr uint32_t kBoxes = kTileRows / kBoxUnit;
// Query tokens of the generic kernel's chunk.
constexpr uint32_t kGenericChunk = 64;
// An atom is the 128 bytes of a row that shared memory is swizzled over.
constexpr uint32_t kAtomBytes = 128;
// A stage of the Hopper ring: 64 rows of one or two atoms.
constexpr uint32_t kStageBytes = 2 * kTileRows * kAtomBytes;
constexpr uint32_t kMaxStages = 12;
constexpr uint32_t kMaxQuerySlots = 2;
// Elements of dim after which tensor-core sums are drained into float32.  The chain's own additions
// truncate: in 128 terms beside one large one at most 127 * 2^-24 = 7.6e-6 is lost, within 1e-5.
constexpr uint32_t kDrainElements = 128;

// What a Hopper block may use of shared memory.
constexpr size_t kSm90BlockShared = 227 * 1024;
constexpr size_t kSm90ControlBytes = 1280;  // Barriers and the queue of items.

// Query tokens of a Hopper kernel's product, a power of two.  What bounds them are a thread's
// registers: a quarter of the tokens are maxima, as many more are their rows, half are sums, and
// float32 has them twice, beside the rows in parts.
constexpr uint32_t kMinChunkTokens = 32;
constexpr uint32_t MaxChunkTokens(ElementType type, bool return_matches) {
  return (type == ElementType::kFloat32 ? 128 : 256) / (return_matches ? 2 : 1);
}

// Warpgroups of consumers: where a product is wide, one block is all that a multiprocessor's
// registers hold, and it needs two that take turns.
constexpr uint32_t ConsumerGroups(ElementType type, uint32_t chunk_tokens) {
  return chunk_tokens == MaxChunkTokens(type, /*return_matches=*/false) ? 2 : 1;
}

enum class Kernel : uint8_t { kGeneric, kSm90 };

struct DeviceTraits {
  bool has_sm90_kernels = false;
  bool overlaps_launches = false;  // Programmatic dependent launch: compute capability 9.0 and up.
  uint32_t multiprocessors = 0;
};

struct GroupShape {
  ElementType element_type = ElementType::kFloat32;
  uint32_t query_tokens = 0;
  uint32_t dim = 0;
  bool normalize = false;
  bool return_matches = false;
};

// Groups with equal configs can share a launch.
struct TileConfig {
  Kernel kernel = Kernel::kGeneric;
  ElementType element_type = ElementType::kFloat32;
  uint32_t chunk_tokens = kGenericChunk;  // Query tokens of an item; N of the product.
  uint32_t blocks_per_multiprocessor = 3;

  // Hopper kernels only.
  uint32_t chunks = 1;          // If more than one, a launch is of one group.
  bool return_matches = false;  // Keeps rows beside maxima.
  uint32_t stages = 0;
  uint32_t query_slots = 1;        // Chunks of queries that shared memory holds at a time.
  uint32_t atoms = 0;              // Of a row.
  bool whole_atoms = false;        // Rows end where an atom does.
  uint32_t box_atoms = 1;          // That one copy brings.
  bool evict_first = true;         // L2 need not keep the rows: no other block reads them.
  bool overlaps_previous = false;  // A launch may start before the one before it ends.
};

// nvcc's C++17, the newest that CMake 3.25 knows of it, has no default comparison.
inline bool operator==(const TileConfig& a, const TileConfig& b) {
  const auto members = [](const TileConfig& c) {
    return std::tie(c.kernel, c.element_type, c.chunk_tokens, c.blocks_per_multiprocessor, c.chunks,
                    c.return_matches, c.stages, c.query_slots, c.atoms, c.whole_atoms, c.box_atoms,
                    c.evict_first, c.overlaps_previous);
  };
  return members(a) == members(b);
}
inline bool operator!=(const TileConfig& a, const TileConfig& b) {
  return !(a == b);
}

TileConfig ChooseTileConfig(const GroupShape& shape, const DeviceTraits& device);

constexpr uint32_t CeilDiv(uint64_t a, uint64_t b) {
  return static_cast<uint32_t>((a + b - 1) / b);
}

// Atoms of a row, the last one padded.
constexpr uint32_t AtomCount(ElementType type, uint32_t dim) {
  return CeilDiv(uint64_t{dim} * ElementBytes(type), kAtomBytes);
}

constexpr uint32_t AtomColumns(ElementType type) {
  return kAtomBytes / static_cast<uint32_t>(ElementBytes(type));
}

// Hopper kernels take float32 queries as a plane of high parts and one of low ones.
constexpr uint32_t QueryPlanes(ElementType type) {
  return type == ElementType::kFloat32 ? 2 : 1;
}

// Of one chunk of a query's image in a Hopper kernel (query_image.h), without what comes with its
// rows and with.
size_t QueryRowsBytes(const TileConfig& config);
size_t QueryChunkBytes(const TileConfig& config);

// Of shared memory that holds a chunk.
size_t QuerySlotBytes(const TileConfig& config);

// Dynamic shared memory of a Hopper kernel's block.
size_t SharedBytes(const TileConfig& config);

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_TILE_CONFIG_H_
