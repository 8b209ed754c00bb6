// The producer of a Hopper kernel: one thread that lets the copy engine fill the ring.
#ifndef MAXSIMD_KERNELS_CUDA_SM90_PRODUCER_CUH_
#define MAXSIMD_KERNELS_CUDA_SM90_PRODUCER_CUH_

#include "kernels/cuda/sm90_block.cuh"

namespace maxsimd::cuda {

// The block's items.  The first few are dealt out, forth and back over the blocks so that all get
// about the same, and fetched together; the others are taken from a counter, one ahead, so that
// neither its latency nor the list's shows.
class ItemSource {
 public:
  __device__ ItemSource(const Sm90Params& params, WorkItem* dealt)
      : launch_(params.launch),
        lanes_(gridDim.x / params.chunks),
        counter_(params.launch.counters + BlockChunk(params)),
        dealt_(dealt) {}

  // By the producer's warp, before anything else and before a barrier of it.
  __device__ void Deal(const Sm90Params& params) {
    const uint32_t turn = threadIdx.x % 32;
    if (turn >= kDealtItems) return;
    const uint32_t lane = blockIdx.x / params.chunks;
    const uint32_t index = turn * lanes_ + (turn % 2 == 0 ? lane : lanes_ - 1 - lane);
    if (index < launch_.item_count) {
      dealt_[turn] = launch_.items[index];
    } else {
      dealt_[turn].rows = 0;
    }
  }

  __device__ bool IsDynamic() const { return launch_.item_count > kDealtItems * lanes_; }

  // rows == 0 at the end.
  __device__ WorkItem Take() {
    if (taken_ < kDealtItems) {
      const WorkItem item = dealt_[taken_++];
      if (taken_ == kDealtItems && IsDynamic()) {
        ClaimNext();
        FetchNext();
      }
      return item;
    }
    const WorkItem item = next_;
    if (item.rows != 0) FetchNext();
    return item;
  }

 private:
  __device__ void ClaimNext() { next_index_ = kDealtItems * lanes_ + atomicAdd(counter_, 1); }
  __device__ void FetchNext() {
    if (next_index_ >= launch_.item_count) {
      next_.rows = 0;
      return;
    }
    next_ = launch_.items[next_index_];
    ClaimNext();
  }

  const LaunchParams& launch_;
  const uint32_t lanes_;
  uint32_t* const counter_;
  WorkItem* const dealt_;
  uint32_t taken_ = 0;
  uint32_t next_index_ = 0;  // Of the item after next_.
  WorkItem next_ = {};       // Of rows 0.
};

// By a warp.
__device__ inline void PrefetchMaps(const TensorMaps& maps) {
  const uint32_t lane = threadIdx.x % 32;
  if (lane < kBoxes) PrefetchMap(&maps.of_rows[lane]);
}

// The tile's atoms lie BoxRows(rows) rows apart in the stage.
__device__ inline void LoadTile(const Sm90Params& params, const TensorMaps& maps, std::byte* stage,
                                Barrier* full, int row, uint32_t rows, uint32_t first_atom) {
  const uint32_t atoms = min(2u, params.atoms - first_atom);
  const uint32_t box_rows = BoxRows(rows);
  const CUtensorMap* const map = &maps.of_rows[box_rows / kBoxUnit - 1];
  ArriveExpecting(full, atoms * box_rows * kAtomBytes);
  for (uint32_t a = 0; a < atoms; a += params.box_atoms) {
    BoxCopy(stage + a * box_rows * kAtomBytes, map, (first_atom + a) * params.column_step, row,
            (first_atom + a) * params.depth_step, params.policy, full);
  }
}

// Hands the query of a new group over; its slot's former query has been released.
__device__ inline void LoadQuery(const Sm90Params& params, const std::byte* query,
                                 const Shared& shared, RingPlace place) {
  Control* const control = shared.control;
  Wait(&control->query_empty[place.index], place.parity ^ 1);
  ArriveExpecting(&control->query_full[place.index], params.query_bytes);
  BulkCopy(shared.query + place.index * params.query_slot_bytes,
           query + static_cast<size_t>(BlockChunk(params)) * params.query_bytes, params.query_bytes,
           &control->query_full[place.index]);
}

struct QueryPlace {
  const std::byte* rows;
  uint32_t tensor_row;
};

__device__ inline void Produce(const Sm90Params& params, const TensorMaps& maps,
                               const Shared& shared, ItemSource& source) {
  Control* const control = shared.control;
  RingPlace stage;
  RingPlace entry;
  RingPlace query;
  uint32_t current_group = ~0u;
  uint32_t tensor_row = 0;
  while (true) {
    const WorkItem item = source.Take();
    const bool new_query = item.rows != 0 && item.group != current_group;
    Wait(&control->item_empty[entry.index], entry.parity ^ 1);
    control->queue[entry.index] = {item, new_query};
    Arrive(&control->item_full[entry.index]);
    entry.Advance(kQueue);
    if (item.rows == 0) return;
    if (new_query) {  // Only now: what it replaces is released by who has seen the entry.
      current_group = item.group;
      const auto [query_rows, first_row] =
          OfGroup(params.launch, item.group, [](const GroupParams& group) {
            return QueryPlace{group.query, group.tensor_row};
          });
      tensor_row = first_row;
      LoadQuery(params, query_rows, shared, query);
      query.Advance(params.query_slots);
    }
    const int first_row = static_cast<int>(tensor_row + item.first_row);
    for (uint32_t row = 0; row < item.rows; row += kTileRows) {
      for (uint32_t atom = 0; atom < params.atoms; atom += 2) {
        Wait(&control->empty[stage.index], stage.parity ^ 1);
        LoadTile(params, maps, shared.ring + stage.index * kStageBytes, &control->full[stage.index],
                 first_row + static_cast<int>(row), item.rows - row, atom);
        stage.Advance(params.stages);
      }
    }
  }
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_SM90_PRODUCER_CUH_
