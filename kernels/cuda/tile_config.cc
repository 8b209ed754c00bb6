#include "kernels/cuda/tile_config.h"

#include <algorithm>

namespace maxsimd::cuda {
namespace {

// What a Hopper multiprocessor has for all of its blocks; each costs 1 KB beside its own.
constexpr size_t kMultiprocessorShared = 228 * 1024;
constexpr size_t kReservedShared = 1024;

// A query chunk may take 64 KB of shared memory.
constexpr size_t kMaxChunkBytes = 64 * 1024;

constexpr uint32_t kMaxSm90Chunks = 64;

// What the swizzle's pattern repeats after.
constexpr size_t kSlotAlignment = 1024;

// Consumer warps: one warpgroup, or two for products of 256 tokens.
constexpr uint32_t WarpsFor(uint32_t chunk_tokens) {
  return chunk_tokens == 256 ? 8 : 4;
}

// Beside the query and the ring: the alignment of both, barriers, and maxima (with rows, if matches
// are asked for) of each warp twice over and of a split document's whole query.
size_t FixedBytes(const TileConfig& config) {
  const size_t maxima =
      2 * WarpsFor(config.chunk_tokens) * config.chunk_tokens + config.chunks * config.chunk_tokens;
  return 1024 + kSm90ControlBytes + maxima * sizeof(float) * (config.return_matches ? 2 : 1);
}

// Sums that must be drained need registers of their own, for which more than 64 tokens leave no
// room.
bool FitsSm90(uint32_t chunk_tokens, uint32_t atoms) {
  return size_t{chunk_tokens} * atoms * kAtomBytes <= kMaxChunkBytes &&
         (chunk_tokens <= 64 || atoms <= 2);
}

// The smallest chunk that holds the query, or the largest that fits; 0: none does.
uint32_t Sm90ChunkTokens(const GroupShape& shape, uint32_t atoms, bool return_matches) {
  uint32_t chunk = 0;
  for (const uint32_t tokens : {32, 64, 128, 256}) {
    // Rows beside the maxima of 256 tokens would take more registers than there are.
    if (tokens == 256 && return_matches) break;
    if (!FitsSm90(tokens, atoms)) break;
    chunk = tokens;
    if (tokens >= shape.query_tokens) break;
  }
  return chunk;
}

// Whether the Hopper kernels score it.  It must not depend on return_matches.
bool IsForSm90(const GroupShape& shape, const DeviceTraits& device) {
  if (!device.has_sm90_kernels || shape.normalize) return false;
  if (shape.element_type == ElementType::kFloat32) return false;
  // A tensor map's smallest pitch.
  if (shape.dim * ElementBytes(shape.element_type) < 16) return false;
  const uint32_t atoms = AtomCount(shape.element_type, shape.dim);
  const uint32_t chunk = Sm90ChunkTokens(shape, atoms, /*return_matches=*/true);
  return chunk != 0 && CeilDiv(shape.query_tokens, chunk) <= kMaxSm90Chunks;
}

// What was fastest on the H200 (README.md): enough bytes in flight to keep the memory busy, and
// room left for blocks of the next launch, which hide this one's start and end.
uint32_t BlocksFor(const TileConfig& config) {
  return config.chunk_tokens == 32 || config.chunk_tokens == 128 ? 2 : 1;
}

uint32_t StagesFor(const TileConfig& config) {
  return config.chunk_tokens == 256 || config.atoms > 2 ? 4 : 3;
}

void ChooseStages(TileConfig* config) {
  const size_t beside = config->query_slots * QuerySlotBytes(*config) + FixedBytes(*config);
  for (uint32_t blocks = BlocksFor(*config); blocks >= 1; --blocks) {
    const size_t room =
        std::min(kSm90BlockShared, kMultiprocessorShared / blocks - kReservedShared);
    if (room < beside + 2 * kStageBytes) continue;
    config->blocks_per_multiprocessor = blocks;
    config->stages =
        std::min(StagesFor(*config), static_cast<uint32_t>((room - beside) / kStageBytes));
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

void LimitBlocks(uint64_t steps_per_multiprocessor, TileConfig* config) {
  // Little more than the ring's depth: a second block would only begin to fill its own.
  constexpr uint64_t kFewSteps = 24;
  if (config->kernel == Kernel::kSm90 && steps_per_multiprocessor < kFewSteps) {
    config->blocks_per_multiprocessor = 1;
  }
}

size_t QuerySlotBytes(const TileConfig& config) {
  return (QueryChunkBytes(config) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

size_t QueryRowsBytes(const TileConfig& config) {
  return size_t{config.chunk_tokens} * config.atoms * kAtomBytes;
}

size_t QueryChunkBytes(const TileConfig& config) {
  return QueryRowsBytes(config) + config.chunk_tokens * sizeof(float);
}

size_t SharedBytes(const TileConfig& config) {
  return FixedBytes(config) + config.query_slots * QuerySlotBytes(config) +
         size_t{config.stages} * kStageBytes;
}

}  // namespace maxsimd::cuda
