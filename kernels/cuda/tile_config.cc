#include "kernels/cuda/tile_config.h"

#include <algorithm>

namespace maxsimd::cuda {
namespace {

// What a Hopper multiprocessor has for all of its blocks; each costs 1 KB beside its own.
constexpr size_t kMultiprocessorShared = 228 * 1024;
constexpr size_t kReservedShared = 1024;

// What a query chunk may take of shared memory; in two planes it takes twice as much.
constexpr size_t kMaxPlaneBytes = 64 * 1024;

constexpr uint32_t kMaxSm90Chunks = 64;

// What the swizzle's pattern repeats after.
constexpr size_t kSlotAlignment = 1024;

// Beside the query and the ring: the alignment of both, barriers, and maxima (with rows, if matches
// are asked for) of each warp twice over and of a split document's whole query.
size_t FixedBytes(const TileConfig& config) {
  const size_t warps = 4 * ConsumerGroups(config.element_type, config.chunk_tokens);
  const size_t maxima = (2 * warps + config.chunks) * config.chunk_tokens;
  return 1024 + kSm90ControlBytes + maxima * sizeof(float) * (config.return_matches ? 2 : 1);
}

// Sums that must be drained need registers of their own, for which more than 64 tokens of 16-bit
// types leave no room.
bool FitsSm90(ElementType type, uint32_t chunk_tokens, uint32_t atoms) {
  return size_t{chunk_tokens} * atoms * kAtomBytes <= kMaxPlaneBytes &&
         (type == ElementType::kFloat32 || chunk_tokens <= 64 || atoms <= 2);
}

// The smallest chunk that holds the query, or the largest that fits; 0: none does.
uint32_t Sm90ChunkTokens(const GroupShape& shape, uint32_t atoms, bool return_matches) {
  uint32_t chunk = 0;
  for (uint32_t tokens = kMinChunkTokens;
       tokens <= MaxChunkTokens(shape.element_type, return_matches); tokens *= 2) {
    if (!FitsSm90(shape.element_type, tokens, atoms)) break;
    chunk = tokens;
    if (tokens >= shape.query_tokens) break;
  }
  return chunk;
}

// Whether the Hopper kernels score it.  It must not depend on return_matches.
bool IsForSm90(const GroupShape& shape, const DeviceTraits& device) {
  if (!device.has_sm90_kernels || shape.normalize) return false;
  // A tensor map's smallest pitch.
  if (shape.dim * ElementBytes(shape.element_type) < 16) return false;
  const uint32_t atoms = AtomCount(shape.element_type, shape.dim);
  const uint32_t chunk = Sm90ChunkTokens(shape, atoms, /*return_matches=*/true);
  return chunk != 0 && CeilDiv(shape.query_tokens, chunk) <= kMaxSm90Chunks;
}

// What was fastest on the H200 (README.md): enough bytes in flight to keep the memory busy, and
// room left for blocks of the next launch, which hide this one's start and end.
uint32_t StagesFor(const TileConfig& config, uint32_t blocks) {
  if (config.chunk_tokens == 256) return 4;
  if (config.atoms > 2) return blocks == 1 ? 6 : 4;
  return config.chunk_tokens == 64 ? 2 : 3;
}

// Two blocks a multiprocessor where both fit: one waits for its first rows, or finishes, while the
// other multiplies.
void ChooseStages(TileConfig* config) {
  const size_t beside = config->query_slots * QuerySlotBytes(*config) + FixedBytes(*config);
  for (uint32_t blocks = config->chunk_tokens == 256 ? 1 : 2; blocks >= 1; --blocks) {
    const size_t room =
        std::min(kSm90BlockShared, kMultiprocessorShared / blocks - kReservedShared);
    const uint32_t wanted = StagesFor(*config, blocks);
    const uint32_t least = blocks == 1 ? 2 : std::min(wanted, 3u);
    if (room < beside + least * kStageBytes) continue;
    config->blocks_per_multiprocessor = blocks;
    config->stages = std::min(wanted, static_cast<uint32_t>((room - beside) / kStageBytes));
    return;
  }
}

}  // namespace

TileConfig ChooseTileConfig(const GroupShape& shape, const DeviceTraits& device) {
  TileConfig config;
  config.element_type = shape.element_type;
  if (!IsForSm90(shape, device)) return config;
  config.kernel = Kernel::kSm90;
  config.atoms = AtomCount(shape.element_type, shape.dim);
  config.whole_atoms = shape.dim * ElementBytes(shape.element_type) % kAtomBytes == 0;
  config.box_atoms = config.whole_atoms && config.atoms % 2 == 0 ? 2 : 1;
  config.chunk_tokens = Sm90ChunkTokens(shape, config.atoms, shape.return_matches);
  config.chunks = CeilDiv(shape.query_tokens, config.chunk_tokens);
  config.return_matches = shape.return_matches;
  // Two queries side by side where they are small: blocks change groups without a pause.
  config.query_slots = config.chunks == 1 && QueryRowsBytes(config) <= 8192 ? 2 : 1;
  config.evict_first = config.chunks == 1;
  ChooseStages(&config);
  return config;
}

size_t QuerySlotBytes(const TileConfig& config) {
  return (QueryChunkBytes(config) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

size_t QueryRowsBytes(const TileConfig& config) {
  return size_t{config.chunk_tokens} * config.atoms * kAtomBytes * QueryPlanes(config.element_type);
}

size_t QueryChunkBytes(const TileConfig& config) {
  // Weights, and a largest magnitude that takes as much as a bulk copy counts in.
  return QueryRowsBytes(config) + config.chunk_tokens * sizeof(float) + 16;
}

size_t SharedBytes(const TileConfig& config) {
  return FixedBytes(config) + config.query_slots * QuerySlotBytes(config) +
         size_t{config.stages} * kStageBytes;
}

}  // namespace maxsimd::cuda
