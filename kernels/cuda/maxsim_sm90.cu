// MaxSim on Hopper (sm_90a) for float16 and bfloat16: document rows on wgmma's M, query tokens on
// N, so that a query of 32 tokens wastes nothing.
//
// A block keeps its query in shared memory and works through items of the work list.  One thread
// (the producer) lets the copy engine fill a ring of stages, each 64 rows of one or two atoms of 64
// columns; one warpgroup of consumers, or two that take tiles in turn, multiplies and keeps running
// maxima in registers; one warp (the finisher) turns an item's maxima into a score, or into a part
// of one, while the consumers go on.  The producer is ahead by the ring's depth, also across
// documents.
//
// A document's last rows come in a box of as many rows, rounded up to 8, so that at most 7 rows of
// its neighbour are read; those are masked in registers.
//
// A launch may overlap the end of the launch before it (programmatic dependent launch): its blocks
// start on multiprocessors that have room.  The two share nothing that either writes, and a launch
// ends only after the one before it: so what follows it on the stream sees both.
#include "kernels/cuda/finish.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace maxsimd::cuda {
namespace {

constexpr uint32_t kQueue = 4;  // Items that the producer may be ahead.
constexpr uint32_t kDealtItems = 8;
constexpr uint32_t kAtomColumns = 64;
constexpr uint32_t kWarpsOfGroup = 4;

// What a launch has beside LaunchParams.
struct Sm90Params {
  LaunchParams launch;
  uint32_t chunks;  // Block b keeps to query chunk b % chunks.
  uint32_t stages;
  uint32_t query_slots;
  uint32_t query_bytes;       // Of one chunk, with its weights,
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
  uint32_t suspicious[2][2 * kWarpsOfGroup];
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

__device__ uint32_t BlockChunk(const Sm90Params& params) {
  return blockIdx.x % params.chunks;
}

// ---- The producer.

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

  // By the producer's warp, before anything else.
  __device__ static void Deal(const Sm90Params& params, WorkItem* dealt) {
    const uint32_t turn = threadIdx.x % 32;
    if (turn >= kDealtItems) return;
    const uint32_t lanes = gridDim.x / params.chunks;
    const uint32_t lane = blockIdx.x / params.chunks;
    const uint32_t index = turn * lanes + (turn % 2 == 0 ? lane : lanes - 1 - lane);
    if (index < params.launch.item_count) {
      dealt[turn] = params.launch.items[index];
    } else {
      dealt[turn].rows = 0;
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
  const WorkItem* const dealt_;
  uint32_t taken_ = 0;
  uint32_t next_index_ = 0;  // Of the item after next_.
  WorkItem next_ = {};       // Of rows 0.
};

// Rows of the box that brings the first `rows` rows of a tile: at most 7 of them are another's.
__device__ uint32_t BoxRows(uint32_t rows) {
  return (min(rows, kTileRows) + kBoxUnit - 1) / kBoxUnit * kBoxUnit;
}

// The tile's atoms lie BoxRows(rows) rows apart in the stage.
__device__ void LoadTile(const Sm90Params& params, const TensorMaps& maps, std::byte* stage,
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
__device__ void LoadQuery(const Sm90Params& params, const GroupParams& group, const Shared& shared,
                          RingPlace place) {
  Control* const control = shared.control;
  Wait(&control->query_empty[place.index], place.parity ^ 1);
  ArriveExpecting(&control->query_full[place.index], params.query_bytes);
  BulkCopy(shared.query + place.index * params.query_slot_bytes,
           group.query + static_cast<size_t>(BlockChunk(params)) * params.query_bytes,
           params.query_bytes, &control->query_full[place.index]);
}

__device__ void Produce(const Sm90Params& params, const TensorMaps& maps, const Shared& shared,
                        ItemSource& source) {
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
      const GroupParams& group = GroupOf(params.launch, item.group);
      current_group = item.group;
      tensor_row = group.tensor_row;
      LoadQuery(params, group, shared, query);
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

// ---- The consumers.

// A thread's maxima: value 2j + e is of column 8j + 2 * (lane % 4) + e.
template <int kN, bool kMatches>
struct Maxima {
  static constexpr int kCount = kN / 4;
  float value[kCount];
  uint32_t row[kMatches ? kCount : 1];
  float poison;  // 0, or NaN once a value of column 0 or 1 was not finite.

  __device__ void Clear() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) value[i] = -INFINITY;
    if constexpr (kMatches) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) row[i] = 0;
    }
    poison = 0;
  }
};

template <bool kMatches, int kN>
__device__ void TakeRow(const float (&c)[kN / 2], int half, uint32_t token,
                        Maxima<kN, kMatches>* maxima) {
  maxima->poison = fmaf(c[2 * half], 0.0f, maxima->poison);
#pragma unroll
  for (int i = 0; i < kN / 4; ++i) {
    const float similarity = c[i / 2 * 4 + half * 2 + i % 2];
    if constexpr (kMatches) {
      if (similarity > maxima->value[i]) {
        maxima->value[i] = similarity;
        maxima->row[i] = token;
      }
    } else {
      maxima->value[i] = fmaxf(maxima->value[i], similarity);
    }
  }
}

// The product of one tile enters the maxima; rows from `rows` on don't belong to the document.
template <bool kMatches, int kN>
__device__ void TakeTile(const float (&c)[kN / 2], uint32_t rows, uint32_t first_token,
                         Maxima<kN, kMatches>* maxima) {
  const uint32_t row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  if (!kMatches && rows >= kTileRows) {
    maxima->poison = fmaf(c[0], 0.0f, fmaf(c[2], 0.0f, maxima->poison));
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) {
      const int at = i / 2 * 4 + i % 2;
      maxima->value[i] = fmaxf(maxima->value[i], fmaxf(c[at], c[at + 2]));
    }
    return;
  }
  if (row < rows) TakeRow<kMatches, kN>(c, 0, first_token + row, maxima);
  if (row + 8 < rows) TakeRow<kMatches, kN>(c, 1, first_token + row + 8, maxima);
}

// Waits for a stage, multiplies it into c, and releases it.  `atom_bytes`: from atom to atom.
template <ElementType kType, int kN>
__device__ void MultiplyStage(const Shared& shared, RingPlace stage, uint32_t query_address,
                              uint32_t atoms, uint32_t atom_bytes, float (&c)[kN / 2]) {
  Control* const control = shared.control;
  Wait(&control->full[stage.index], stage.parity);
  const uint32_t rows = SharedAddress(shared.ring) + stage.index * kStageBytes;
  WgmmaFence();
#pragma unroll
  for (uint32_t atom = 0; atom < 2; ++atom) {
    if (atom == atoms) break;
#pragma unroll
    for (uint32_t k = 0; k < kAtomColumns / 16; ++k) {
      Wgmma<kType>(c, MatrixDescriptor(rows + atom * atom_bytes + k * 32),
                   MatrixDescriptor(query_address + atom * (kN * kAtomBytes) + k * 32),
                   atom + k != 0);
    }
  }
  WgmmaCommit();
  WgmmaWait<0>();
  ArriveOnce(&control->empty[stage.index]);
}

// One tile, all of its stages: sums of 128 elements of dim are added in float32.
template <ElementType kType, int kN>
__device__ void MultiplyTile(const Sm90Params& params, const Shared& shared, RingPlace* stage,
                             uint32_t query_address, uint32_t rows, float (&c)[kN / 2]) {
  const uint32_t atom_bytes = BoxRows(rows) * kAtomBytes;
  MultiplyStage<kType, kN>(shared, *stage, query_address, min(2u, params.atoms), atom_bytes, c);
  stage->Advance(params.stages);
  if constexpr (kN <= 64) {  // Longer queries are scored here only where one stage is all.
    for (uint32_t atom = 2; atom < params.atoms; atom += 2) {
      float more[kN / 2];
      MultiplyStage<kType, kN>(shared, *stage, query_address + atom * (kN * kAtomBytes),
                               min(2u, params.atoms - atom), atom_bytes, more);
      stage->Advance(params.stages);
#pragma unroll
      for (int i = 0; i < kN / 2; ++i) c[i] += more[i];
    }
  }
}

// Folds the upper half of the lanes' values onto the lower, and the lanes themselves: each step
// halves what a lane holds and how many lanes hold the same columns.
template <int kCount, int kLane, int kN, bool kMatches>
__device__ void Halve(Maxima<kN, kMatches>* maxima) {
  const bool upper = threadIdx.x & kLane;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const float keep = upper ? maxima->value[i + kCount / 2] : maxima->value[i];
    const float send = upper ? maxima->value[i] : maxima->value[i + kCount / 2];
    const float other = __shfl_xor_sync(~0u, send, kLane);
    if constexpr (kMatches) {
      const uint32_t keep_row = upper ? maxima->row[i + kCount / 2] : maxima->row[i];
      const uint32_t send_row = upper ? maxima->row[i] : maxima->row[i + kCount / 2];
      const uint32_t other_row = __shfl_xor_sync(~0u, send_row, kLane);
      const bool take = other > keep || (other == keep && other_row < keep_row);
      maxima->value[i] = take ? other : keep;
      maxima->row[i] = take ? other_row : keep_row;
    } else {
      maxima->value[i] = fmaxf(keep, other);
    }
  }
}

// Each warp's maxima of all columns, to shared memory.
template <int kN, bool kMatches>
__device__ void StoreWarpMaxima(Maxima<kN, kMatches>* maxima, float* to, uint32_t* rows_to,
                                uint32_t* suspicious) {
  constexpr int kCount = kN / 4;
  Halve<kCount, 16>(maxima);
  Halve<kCount / 2, 8>(maxima);
  Halve<kCount / 4, 4>(maxima);
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first = (lane >> 4 & 1) * (kCount / 2) + (lane >> 3 & 1) * (kCount / 4) +
                         (lane >> 2 & 1) * (kCount / 8);
#pragma unroll
  for (uint32_t i = 0; i < kCount / 8; ++i) {
    const uint32_t at = first + i;
    const uint32_t column = at / 2 * 8 + lane % 4 * 2 + at % 2;
    to[column] = maxima->value[i];
    if constexpr (kMatches) rows_to[column] = maxima->row[i];
  }
  const bool any = __any_sync(~0u, maxima->poison != 0);  // NaN compares unequal.
  if (lane == 0) *suspicious = any;
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

template <ElementType kType, int kN, int kGroups, bool kMatches>
__device__ void Consume(const Sm90Params& params, const Shared& shared) {
  constexpr uint32_t kWarps = kGroups * kWarpsOfGroup;
  Control* const control = shared.control;
  const uint32_t warp = threadIdx.x / 32;
  ItemReader reader;
  RingPlace stage;
  RingPlace turn;
  uint32_t tile_turn = 0;
  while (true) {
    const QueueEntry& entry = reader.Next(params, shared);
    const uint32_t rows = entry.item.rows;
    const uint32_t first_token = entry.item.first_token;
    reader.Release(shared);
    if (rows == 0) return;
    const uint32_t query_address = SharedAddress(reader.Query(params, shared));
    Maxima<kN, kMatches> maxima;
    maxima.Clear();
    for (uint32_t row = 0; row < rows; row += kTileRows, tile_turn ^= 1) {
      if (kGroups == 2 && tile_turn != warp / kWarpsOfGroup) {
        stage.Advance(params.stages);  // Of one stage: the other warpgroup's.
        continue;
      }
      float c[kN / 2];
      MultiplyTile<kType, kN>(params, shared, &stage, query_address, rows - row, c);
      TakeTile<kMatches, kN>(c, rows - row, first_token + row, &maxima);
    }
    Wait(&control->maxima_empty[turn.index], turn.parity ^ 1);
    const uint32_t place = turn.index * kWarps + warp;
    StoreWarpMaxima(&maxima, shared.maxima + place * kN, shared.rows + place * kN,
                    &control->suspicious[turn.index][warp]);
    Arrive(&control->maxima_full[turn.index]);  // Each thread for what it wrote.
    turn.Advance(2);
  }
}

// ---- The finisher.

// The warps' maxima become those of the item, in the first warp's place.
template <int kN, int kWarps, bool kMatches>
__device__ void CombineWarps(uint32_t column, float* maxima, uint32_t* rows) {
  float value = maxima[column];
  uint32_t row = kMatches ? rows[column] : 0;
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) {
    const float other = maxima[warp * kN + column];
    if constexpr (kMatches) {
      const uint32_t other_row = rows[warp * kN + column];
      if (other > value || (other == value && other_row < row)) row = other_row;
    }
    value = fmaxf(value, other);
  }
  maxima[column] = value;
  if constexpr (kMatches) rows[column] = row;
}

template <ElementType kType, int kN, int kGroups, bool kMatches>
__device__ void Finish(const Sm90Params& params, const Shared& shared) {
  constexpr int kWarps = kGroups * kWarpsOfGroup;
  Control* const control = shared.control;
  const Team<32> team{static_cast<int>(threadIdx.x % 32)};
  ItemReader reader;
  RingPlace turn;
  while (true) {
    const WorkItem item = reader.Next(params, shared).item;
    if (item.rows == 0) return;
    const GroupParams& group = GroupOf(params.launch, item.group);
    Wait(&control->maxima_full[turn.index], turn.parity);
    float* const maxima = shared.maxima + turn.index * kWarps * kN;
    uint32_t* const rows = shared.rows + turn.index * kWarps * kN;
    for (uint32_t i = team.thread; i < kN; i += 32) {
      CombineWarps<kN, kWarps, kMatches>(i, maxima, rows);
    }
    const bool suspicious = __any_sync(
        ~0u, team.thread < kWarps && control->suspicious[turn.index][team.thread % kWarps] != 0);
    const float* const chunk_weights =
        reinterpret_cast<const float*>(reader.Query(params, shared) + params.query_rows_bytes);
    if (kN == kSumTokens && params.chunks > 1 && item.siblings == params.chunks) {
      FinishChunk(kType, params.launch, group, chunk_weights, item, BlockChunk(params), suspicious,
                  maxima, &control->finish);
    } else {
      FinishItem(team, kType, params.launch, group,
                 params.chunks > 1 ? group.weights : chunk_weights, item, BlockChunk(params), kN,
                 suspicious, maxima, rows, shared.all_maxima, shared.all_rows, &control->finish);
    }
    Arrive(&control->maxima_empty[turn.index]);
    turn.Advance(2);
    reader.Release(shared);
  }
}

template <int kGroups>
__device__ void InitBarriers(const Sm90Params& params, Control* control) {
  constexpr uint32_t kConsumerWarps = kGroups * kWarpsOfGroup;
  constexpr uint32_t kReaders = kConsumerWarps + 1;  // And the finisher.
  for (uint32_t i = 0; i < params.stages; ++i) {
    InitBarrier(&control->full[i], 1);
    InitBarrier(&control->empty[i], kWarpsOfGroup);
  }
  for (uint32_t i = 0; i < kMaxQuerySlots; ++i) {
    InitBarrier(&control->query_full[i], 1);
    InitBarrier(&control->query_empty[i], kReaders);
  }
  for (uint32_t i = 0; i < kQueue; ++i) {
    InitBarrier(&control->item_full[i], 1);
    InitBarrier(&control->item_empty[i], kReaders);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    InitBarrier(&control->maxima_full[i], kConsumerWarps * 32);
    InitBarrier(&control->maxima_empty[i], 32);
  }
  PublishBarriers();
}

// Two warpgroups of 256-token products need more registers a thread than 384 threads have; the
// producer's warpgroup gives its own up: 2 * 128 * 224 + 128 * 56 = 384 * 168.
template <int kN>
constexpr int kGroupsFor = kN == 256 ? 2 : 1;
template <int kN>
constexpr int kThreadsFor = kN == 256 ? 384 : 192;
template <int kN>
constexpr int kBlocksFor = kN == 32    ? 3
                           : kN == 256 ? 1
                                       : 2;

template <ElementType kType, int kN, bool kMatches>
__global__ void __launch_bounds__(kThreadsFor<kN>, kBlocksFor<kN>)
    MaxSimSm90(const __grid_constant__ Sm90Params params, const __grid_constant__ TensorMaps maps) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kGroups = kGroupsFor<kN>;
  extern __shared__ __align__(1024) std::byte shared_bytes[];
  const Shared shared = PlaceShared<kN, kGroups, kMatches>(shared_bytes, params);
  constexpr uint32_t kProducer = kGroups * 128;
  constexpr uint32_t kFinisher = kProducer + 32;
  AllowNextLaunch();
  if (threadIdx.x == 0) InitBarriers<kGroups>(params, shared.control);
  if (threadIdx.x / 32 == kProducer / 32) {
    ItemSource::Deal(params, shared.control->dealt);
  } else if (threadIdx.x >= kFinisher && threadIdx.x < kFinisher + kBoxes) {
    PrefetchMap(&maps.of_rows[threadIdx.x - kFinisher]);
  }
  __syncthreads();
  if (threadIdx.x >= kProducer) {
    if constexpr (kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x == kProducer) {
      ItemSource source(params, shared.control->dealt);
      Produce(params, maps, shared, source);
      if (source.IsDynamic()) LeaveCounters(params.launch.counters);
      WaitForPreviousLaunch();
    } else if (threadIdx.x >= kFinisher && threadIdx.x < kFinisher + 32) {
      Finish<kType, kN, kGroups, kMatches>(params, shared);
    }
  } else {
    if constexpr (kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    Consume<kType, kN, kGroups, kMatches>(params, shared);
  }
#endif
}

template <ElementType kType, class Visit>
cudaError_t ForKernelOfType(const TileConfig& config, const Visit& visit) {
  switch (config.chunk_tokens) {
    case 32:
      return config.return_matches ? visit(MaxSimSm90<kType, 32, true>, kThreadsFor<32>)
                                   : visit(MaxSimSm90<kType, 32, false>, kThreadsFor<32>);
    case 64:
      return config.return_matches ? visit(MaxSimSm90<kType, 64, true>, kThreadsFor<64>)
                                   : visit(MaxSimSm90<kType, 64, false>, kThreadsFor<64>);
    case 128:
      return config.return_matches ? visit(MaxSimSm90<kType, 128, true>, kThreadsFor<128>)
                                   : visit(MaxSimSm90<kType, 128, false>, kThreadsFor<128>);
    case 256:
      return visit(MaxSimSm90<kType, 256, false>, kThreadsFor<256>);
  }
  return cudaErrorInvalidValue;
}

template <class Visit>
cudaError_t ForKernel(const TileConfig& config, const Visit& visit) {
  return config.element_type == ElementType::kFloat16
             ? ForKernelOfType<ElementType::kFloat16>(config, visit)
             : ForKernelOfType<ElementType::kBfloat16>(config, visit);
}

Sm90Params MakeParams(const TileConfig& config, const LaunchParams& launch) {
  Sm90Params params;
  params.launch = launch;
  params.chunks = config.chunks;
  params.stages = config.stages;
  params.query_slots = config.query_slots;
  params.query_bytes = static_cast<uint32_t>(QueryChunkBytes(config));
  params.query_rows_bytes = static_cast<uint32_t>(QueryRowsBytes(config));
  params.query_slot_bytes = static_cast<uint32_t>(QuerySlotBytes(config));
  params.atoms = config.atoms;
  params.all_tokens = config.chunks * config.chunk_tokens;
  params.column_step = config.whole_atoms ? 0 : kAtomColumns;
  params.depth_step = config.whole_atoms ? 1 : 0;
  params.box_atoms = config.box_atoms;
  params.policy = config.evict_first ? kEvictFirst : kEvictNormal;
  return params;
}

}  // namespace

cudaError_t PrepareSm90() {
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
    for (const uint32_t chunk_tokens : {32, 64, 128, 256}) {
      for (const bool return_matches : {false, true}) {
        if (chunk_tokens == 256 && return_matches) continue;
        TileConfig config;
        config.element_type = type;
        config.chunk_tokens = chunk_tokens;
        config.return_matches = return_matches;
        const cudaError_t error = ForKernel(config, [](auto* kernel, int) {
          cudaFuncAttributes found;
          const cudaError_t missing = cudaFuncGetAttributes(&found, kernel);
          if (missing != cudaSuccess) return missing;
          return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      kSm90BlockShared);
        });
        if (error != cudaSuccess) return error;
      }
    }
  }
  return cudaSuccess;
}

cudaError_t LaunchSm90(const TileConfig& config, const LaunchParams& params, const TensorMaps& maps,
                       uint32_t blocks, cudaStream_t stream) {
  const Sm90Params sm90 = MakeParams(config, params);
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  return ForKernel(config, [&](auto* kernel, int threads) {
    cudaLaunchConfig_t launch = {};
    launch.gridDim = blocks;
    launch.blockDim = threads;
    launch.dynamicSmemBytes = SharedBytes(config);
    launch.stream = stream;
    launch.attrs = &overlap;
    launch.numAttrs = config.overlaps_previous ? 1 : 0;
    return cudaLaunchKernelEx(&launch, kernel, sm90, maps);
  });
}

}  // namespace maxsimd::cuda
