// MaxSim on Hopper (sm_90a): document rows on wgmma's M, query tokens on N, so that a query of 32
// tokens wastes nothing.
//
// A block keeps its query in shared memory and works through items of the work list.  One thread
// (the producer) lets the copy engine fill a ring of stages, each 64 rows of one or two atoms of 64
// columns; one warpgroup of consumers, or two that take tiles in turn, multiplies and keeps running
// maxima in registers; one warp (the finisher) turns an item's maxima into a score, or into a part
// of one, while the consumers go on.  The producer is ahead by the ring's depth, also across
// documents.
//
// float32 is multiplied as pairs of TF32: high * high + high * low + low * high; what is left out
// is below 2^-20 of a product.  The query comes split by the host, as two planes; the rows are
// split in registers, on their way from the ring to the tensor cores.
//
// A document's last rows come in a box of as many rows, rounded up to 8, so that at most 7 rows of
// its neighbour are read; those are masked in registers.
//
// A launch may overlap the end of the launch before it (programmatic dependent launch): its blocks
// start on multiprocessors that have room.  The two share nothing that either writes, and a launch
// ends only after the one before it: so what follows it on the stream sees both.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_kernel.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/sm90_block.cuh"
#include "kernels/cuda/sm90_consumer.cuh"
#include "kernels/cuda/sm90_finisher.cuh"
#include "kernels/cuda/sm90_producer.cuh"

namespace maxsimd::cuda {
namespace {

// By one thread each of three warps: lanes would take turns.
template <int kGroups>
__device__ void InitBarriers(uint32_t warp, const Sm90Params& params, Control* control) {
  constexpr uint32_t kConsumerWarps = kGroups * kWarpsOfGroup;
  constexpr uint32_t kReaders = kConsumerWarps + 1;  // And the finisher.
  if (warp == 0) {
#pragma unroll 1
    for (uint32_t i = 0; i < params.stages; ++i) {
      InitBarrier(&control->full[i], 1);
      InitBarrier(&control->empty[i], kWarpsOfGroup);
    }
  } else if (warp == 1) {
    for (uint32_t i = 0; i < kQueue; ++i) {
      InitBarrier(&control->item_full[i], 1);
      InitBarrier(&control->item_empty[i], kReaders);
    }
  } else {
    for (uint32_t i = 0; i < 2; ++i) {
      InitBarrier(&control->query_full[i], 1);
      InitBarrier(&control->query_empty[i], kReaders);
      InitBarrier(&control->maxima_full[i], kConsumerWarps * 32);
      InitBarrier(&control->maxima_empty[i], 32);
    }
  }
  PublishBarriers();
}
static_assert(kMaxQuerySlots == 2);

// Two warpgroups of wide products need more registers a thread than 384 threads have; the
// producer's warpgroup gives its own up: 2 * 128 * 224 + 128 * 56 = 384 * 168.
template <ElementType kType, int kN>
struct BlockShape {
  static constexpr int kGroups = ConsumerGroups(kType, kN);
  static constexpr int kThreads = kGroups == 2 ? 384 : 192;
  // That must fit a multiprocessor's registers.
  static constexpr int kBlocks = kGroups == 2                                 ? 1
                                 : kN == 32 && kType != ElementType::kFloat32 ? 3
                                                                              : 2;
};

template <ElementType kType, int kN, bool kMatches>
__global__ void __launch_bounds__(BlockShape<kType, kN>::kThreads, BlockShape<kType, kN>::kBlocks)
    MaxSimSm90(const __grid_constant__ Sm90Params params, const __grid_constant__ TensorMaps maps) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kGroups = BlockShape<kType, kN>::kGroups;
  extern __shared__ __align__(1024) std::byte shared_bytes[];
  const Shared shared = PlaceShared<kN, kGroups, kMatches>(shared_bytes, params);
  constexpr uint32_t kProducer = kGroups * 128;
  constexpr uint32_t kFinisher = kProducer + 32;
  AllowNextLaunch();
  ItemSource source(params, shared.control->dealt);
  if (threadIdx.x < 3 * 32 && threadIdx.x % 32 == 0) {
    InitBarriers<kGroups>(threadIdx.x / 32, params, shared.control);
  } else if (threadIdx.x / 32 == kProducer / 32) {
    source.Deal(params);
  } else if (threadIdx.x / 32 == kFinisher / 32) {
    PrefetchMaps(maps);
  }
  __syncthreads();
  if (threadIdx.x / 32 == kProducer / 32) {
    if constexpr (kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x == kProducer) {
      Produce(params, maps, shared, source);
      if (source.IsDynamic()) LeaveCounters(params.launch.counters);
      WaitForPreviousLaunch();
    }
    return;
  }
  if (threadIdx.x >= kFinisher) {
    if constexpr (kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x < kFinisher + 32) Finish<kN, kGroups, kMatches>(params, shared);
  } else {
    if constexpr (kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    Consume<kType, kN, kGroups, kMatches>(params, shared);
  }
#endif
}

template <ElementType kType, int kN, class Visit>
cudaError_t ForKernelOfSize(bool return_matches, const Visit& visit) {
  constexpr int kThreads = BlockShape<kType, kN>::kThreads;
  if (!return_matches) return visit(MaxSimSm90<kType, kN, false>, kThreads);
  if constexpr (kN <= MaxChunkTokens(kType, /*return_matches=*/true)) {
    return visit(MaxSimSm90<kType, kN, true>, kThreads);
  }
  return cudaErrorInvalidValue;
}

template <ElementType kType, class Visit>
cudaError_t ForKernelOfType(const TileConfig& config, const Visit& visit) {
  switch (config.chunk_tokens) {
    case 32:
      return ForKernelOfSize<kType, 32>(config.return_matches, visit);
    case 64:
      return ForKernelOfSize<kType, 64>(config.return_matches, visit);
    case 128:
      return ForKernelOfSize<kType, 128>(config.return_matches, visit);
    case 256:
      if constexpr (MaxChunkTokens(kType, /*return_matches=*/false) == 256) {
        return ForKernelOfSize<kType, 256>(config.return_matches, visit);
      }
  }
  return cudaErrorInvalidValue;
}

template <class Visit>
cudaError_t ForKernel(const TileConfig& config, const Visit& visit) {
  switch (config.element_type) {
    case ElementType::kFloat32:
      return ForKernelOfType<ElementType::kFloat32>(config, visit);
    case ElementType::kFloat16:
      return ForKernelOfType<ElementType::kFloat16>(config, visit);
    case ElementType::kBfloat16:
      return ForKernelOfType<ElementType::kBfloat16>(config, visit);
  }
  return cudaErrorInvalidValue;
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
  params.column_step = config.whole_atoms ? 0 : AtomColumns(config.element_type);
  params.depth_step = config.whole_atoms ? 1 : 0;
  params.box_atoms = config.box_atoms;
  params.policy = config.evict_first ? kEvictFirst : kEvictNormal;
  return params;
}

}  // namespace

cudaError_t PrepareSm90() {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    for (const bool return_matches : {false, true}) {
      TileConfig config;
      config.element_type = type;
      config.return_matches = return_matches;
      for (config.chunk_tokens = kMinChunkTokens;
           config.chunk_tokens <= MaxChunkTokens(type, return_matches); config.chunk_tokens *= 2) {
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
  return ForKernel(config, [&](auto* kernel, int threads) {
    return LaunchKernel(kernel, {blocks, threads, SharedBytes(config)}, config.overlaps_previous,
                        stream, sm90, maps);
  });
}

}  // namespace maxsimd::cuda
