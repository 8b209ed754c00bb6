// What the roles of a Hopper kernel's block share: parameters, shared memory, the queue of items.
#ifndef MAXSIMD_KERNELS_CUDA_SM90_BLOCK_CUH_
#define MAXSIMD_KERNELS_CUDA_SM90_BLOCK_CUH_

#include "kernels/cuda/finish.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/tile_config.h"

namespace maxsimd::cuda {

constexpr uint32_t kQueue = 4;  // Items that the producer may be ahead.
constexpr uint32_t kDealtItems = 8;
constexpr uint32_t kWarpsOfGroup = 4;

// What a launch has beside LaunchParams.
struct Sm90Params {
  LaunchParams launch;
  uint32_t chunks;  // Block b keeps to query chunk b % chunks.
  uint32_t stages;
  uint32_t query_slots;
  uint32_t query_bytes;       // Of one chunk, with what comes with its rows,
  uint32_t query_rows_bytes;  // without,
  uint32_t query_slot_bytes;  // and as it lies in shared memory.
  uint32_t atoms;             // Of a row.
  uint32_t all_tokens;        // Room for the maxima of a split document.
  // Where atom a of a row begins: column a * column_step, depth a * depth_step of the map.
  uint32_t column_step;
  uint32_t depth_step;
  uint32_t box_atoms;  // Of TensorMaps::tile.
  uint64_t policy;
};

struct QueueEntry {
  WorkItem item;  // rows == 0: no more items.
  uint32_t new_query;
};

struct Control {
  Barrier full[kMaxStages];
  Barrier empty[kMaxStages];
  Barrier query_full[kMaxQuerySlots];
  Barrier query_empty[kMaxQuerySlots];
  Barrier item_full[kQueue];
  Barrier item_empty[kQueue];
  Barrier maxima_full[2];
  Barrier maxima_empty[2];
  QueueEntry queue[kQueue];
  WorkItem dealt[kDealtItems];
  FinishState finish;
  uint32_t non_finite[2][2 * kWarpsOfGroup];
};
static_assert(sizeof(Control) <= kSm90ControlBytes);

// The pieces of dynamic shared memory, in this order from a multiple of 1,024 bytes.
struct Shared {
  std::byte* query;
  std::byte* ring;
  float* all_maxima;
  uint32_t* all_rows;
  float* maxima;   // [2][warps][N]: successive items alternate.
  uint32_t* rows;  // The same, with matches.
  Control* control;
};

template <int kN, int kGroups, bool kMatches>
__device__ Shared PlaceShared(std::byte* bytes, const Sm90Params& params) {
  const uint32_t misplaced = SharedAddress(bytes) % 1024;
  Shared shared;
  shared.query = bytes + (1024 - misplaced) % 1024;
  shared.ring = shared.query + params.query_slots * params.query_slot_bytes;
  shared.all_maxima = reinterpret_cast<float*>(shared.ring + params.stages * kStageBytes);
  float* next = shared.all_maxima + params.all_tokens;
  shared.all_rows = reinterpret_cast<uint32_t*>(next);
  if (kMatches) next += params.all_tokens;
  shared.maxima = next;
  next += 2 * kGroups * kWarpsOfGroup * kN;
  shared.rows = reinterpret_cast<uint32_t*>(next);
  if (kMatches) next += 2 * kGroups * kWarpsOfGroup * kN;
  shared.control = reinterpret_cast<Control*>(next);
  return shared;
}

__device__ inline uint32_t BlockChunk(const Sm90Params& params) {
  return blockIdx.x % params.chunks;
}

// Rows of the box that brings the first `rows` rows of a tile: at most 7 of them are another's.
__device__ inline uint32_t BoxRows(uint32_t rows) {
  return (min(rows, kTileRows) + kBoxUnit - 1) / kBoxUnit * kBoxUnit;
}

// Who reads the queue of items, and the queries that come with them.
class ItemReader {
 public:
  // Waits for the next item.
  __device__ const QueueEntry& Next(const Sm90Params& params, const Shared& shared) {
    Control* const control = shared.control;
    Wait(&control->item_full[entry_.index], entry_.parity);
    const QueueEntry& entry = control->queue[entry_.index];
    if (entry.new_query) {
      if (has_query_) ArriveOnce(&control->query_empty[query_slot_]);
      Wait(&control->query_full[query_.index], query_.parity);
      query_slot_ = query_.index;
      has_query_ = true;
      query_.Advance(params.query_slots);
    }
    return entry;
  }
  // By the whole warp: it no longer needs the item.
  __device__ void Release(const Shared& shared) {
    ArriveOnce(&shared.control->item_empty[entry_.index]);
    entry_.Advance(kQueue);
  }
  __device__ std::byte* Query(const Sm90Params& params, const Shared& shared) const {
    return shared.query + query_slot_ * params.query_slot_bytes;
  }

 private:
  RingPlace entry_;
  RingPlace query_;  // The next to come.
  uint32_t query_slot_ = 0;
  bool has_query_ = false;
};

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SM90_BLOCK_CUH_
