// Wrappers of the PTX instructions that both kernels use, one each and nothing more.
//
// Our own and not CUTLASS: the kernels need about twenty instructions; the headers that would bring
// them are a large dependency with layouts of its own, and slow to compile.
#ifndef MAXSIMD_KERNELS_CUDA_PTX_CUH_
#define MAXSIMD_KERNELS_CUDA_PTX_CUH_

#include <cstdint>

namespace maxsimd::cuda {

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Adds and returns what was there, between all of this thread's accesses before and after it, as
// the device sees them.
__device__ inline uint32_t AddReleaseAcquire(uint32_t* to, uint32_t value) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(to), "r"(value)
               : "memory");
  return before;
}

// Programmatic dependent launch: the next launch on the stream may start now (if its launch says
// so, and once every block has come here); and waiting for the one before to be over and its memory
// visible.  Without the launch attribute neither does anything.
__device__ inline void AllowNextLaunch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void WaitForPreviousLaunch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Copies `valid` of 16 bytes, at most 16, and zeros behind them.
__device__ inline void CopyAsync16(uint32_t to, const void* from, uint32_t valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid)
               : "memory");
}

__device__ inline void CopyAsync4(uint32_t to, const void* from, uint32_t valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(valid)
               : "memory");
}

__device__ inline void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kPending>
__device__ inline void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Four 8 x 16-byte matrices; lane 8m + r gives the address of row r of matrix m.
__device__ inline void LoadMatrices(uint32_t (&matrices)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

__device__ inline void MmaFloat16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void MmaBfloat16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void MmaTf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A float32 as the sum of two TF32 (8 bits of exponent, 11 of significand), of which the tensor
// cores ignore the last 13 bits.  The first is truncated, so that the largest finite value stays
// finite; the second is rounded, which leaves 2^-22 of the value.  NaN and infinity leave a NaN or
// an infinity in the first.
__device__ inline void SplitTf32(uint32_t bits, uint32_t& high, uint32_t& low) {
  high = bits & 0xffffe000u;
  low = __float_as_uint(__uint_as_float(bits) - __uint_as_float(high)) + 0x1000u;
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_PTX_CUH_
