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
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/sm90_block.cuh"
#include "kernels/cuda/sm90_consumer.cuh"
#include "kernels/cuda/sm90_finisher.cuh"
#include "kernels/cuda/sm90_producer.cuh"

namespace maxsimd::cuda {
namespace {

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
