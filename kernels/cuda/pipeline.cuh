// mbarriers and bulk copies: how the Hopper kernel's producer and consumers hand buffers on.
//
// A full barrier completes when its one announced arrival and all announced bytes are there; an
// empty one when every consuming warp has arrived.  Phase: a barrier's n-th completion has parity
// n % 2; waiting for the parity before the first returns at once.
#ifndef MAXSIMD_KERNELS_CUDA_PIPELINE_CUH_
#define MAXSIMD_KERNELS_CUDA_PIPELINE_CUH_

#include <cstdint>

#include <cuda.h>

#include "kernels/cuda/ptx.cuh"

namespace maxsimd::cuda {

using Barrier = uint64_t;

__device__ inline void InitBarrier(Barrier* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)),
               "r"(arrivals));
}

// After InitBarrier and before the block's barrier: the copy engine sees them too.
__device__ inline void PublishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void ArriveExpecting(Barrier* barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}

__device__ inline void Arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
}

// One arrival for the whole warp, after all of its lanes have come here.
__device__ inline void ArriveOnce(Barrier* barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) Arrive(barrier);
}

__device__ inline void Wait(Barrier* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(SharedAddress(barrier)),
      "r"(parity)
      : "memory");
}

// Bytes and addresses: multiples of 16.
__device__ inline void BulkCopy(void* to, const void* from, uint32_t bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(to)),
      "l"(from), "r"(bytes), "r"(SharedAddress(barrier))
      : "memory");
}

// createpolicy's encodings of what L2 should keep.
constexpr uint64_t kEvictFirst = 0x12f0000000000000;
constexpr uint64_t kEvictNormal = 0x1000000000000000;

// One box of the tensor map, from (column, row, atom).
__device__ inline void BoxCopy(void* to, const CUtensorMap* map, int column, int row, int atom,
                               uint64_t policy, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(SharedAddress(to)),
      "l"(map), "r"(SharedAddress(barrier)), "r"(column), "r"(row), "r"(atom), "l"(policy)
      : "memory");
}

__device__ inline void PrefetchMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// A place in a ring of `size` buffers, and the parity of its current round.
struct RingPlace {
  uint32_t index = 0;
  uint32_t parity = 0;
  __device__ void Advance(uint32_t size) {
    if (++index == size) {
      index = 0;
      parity ^= 1;
    }
  }
};

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_PIPELINE_CUH_
