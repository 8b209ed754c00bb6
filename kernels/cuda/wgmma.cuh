// wgmma: a warpgroup's product of 64 document rows and N query tokens, added into float32
// registers. N follows from the accumulator's length, 2 * N / 4.
//
//   16-bit types: over 16 elements of dim, both operands from shared memory
//   TF32:         over 8 elements of dim, the rows from registers (ptx.cuh: LoadMatrices), the
//   query
//                 from shared memory; the last 13 bits of an operand are ignored
//
// Layout of c: warp w, lane l hold rows 16w + l/4 and + 8, columns 8j + 2(l%4) and + 1; c[4j],
// c[4j+1] belong to the first row, c[4j+2], c[4j+3] to the second.
#ifndef MAXSIMD_KERNELS_CUDA_WGMMA_CUH_
#define MAXSIMD_KERNELS_CUDA_WGMMA_CUH_

#include <cstdint>

#include "kernels/element_type.h"

namespace maxsimd::cuda {

// What all lanes hold alike.  The compiler can't know, and a descriptor that is computed in
// ordinary registers takes four moves per wgmma.
__device__ inline uint32_t Uniform(uint32_t value) {
  return __shfl_sync(~0u, value, 0);
}

// The lower half of the descriptor of a K-major operand in shared memory under the 128-byte
// swizzle. What lies so many bytes further (the next 16 elements of dim, or 8 of TF32, 32 bytes)
// has DescriptorStep(bytes) more.  The upper half is the same for all: so it needn't be moved to
// the uniform registers that wgmma takes descriptors from.
__device__ inline uint32_t MatrixDescriptor(uint32_t shared_address) {
  return (shared_address & 0x3ffff) >> 4 | 1u << 16;
}
__device__ constexpr uint32_t DescriptorStep(uint32_t bytes) {
  return bytes >> 4;
}
// 1,024 bytes between groups of 8 rows; the swizzle.
__device__ inline uint64_t WholeDescriptor(uint32_t lower) {
  return uint64_t{64u | 1u << 30} << 32 | lower;
}

__device__ inline void WgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void WgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ inline void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Registers of rows have their values here: before WgmmaFence, which must come after the last of
// them and which the compiler would otherwise move such work across.
template <int kCount>
__device__ inline void SettleRegisters(uint32_t (&values)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile(""
                 : "+r"(values[i][0]), "+r"(values[i][1]), "+r"(values[i][2]),
                   "+r"(values[i][3])::"memory");
  }
}

// An asm statement names each of its registers; these make the lists.  clang-format would put one
// name on a line.
// clang-format off
#define MAXSIMD_NAMES_16 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define MAXSIMD_NAMES_32 \
  MAXSIMD_NAMES_16 ", " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define MAXSIMD_NAMES_64 \
  MAXSIMD_NAMES_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define MAXSIMD_NAMES_128 \
  MAXSIMD_NAMES_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define MAXSIMD_SUMS_4(i) "+f"(c[i]), "+f"(c[(i) + 1]), "+f"(c[(i) + 2]), "+f"(c[(i) + 3])
#define MAXSIMD_SUMS_16(i) \
  MAXSIMD_SUMS_4(i), MAXSIMD_SUMS_4((i) + 4), MAXSIMD_SUMS_4((i) + 8), MAXSIMD_SUMS_4((i) + 12)
#define MAXSIMD_SUMS_32(i) MAXSIMD_SUMS_16(i), MAXSIMD_SUMS_16((i) + 16)
#define MAXSIMD_SUMS_64(i) MAXSIMD_SUMS_32(i), MAXSIMD_SUMS_32((i) + 32)
#define MAXSIMD_SUMS_128(i) MAXSIMD_SUMS_64(i), MAXSIMD_SUMS_64((i) + 64)
// clang-format on

// `n`: query tokens; `count`: of c; the rest: names of the operands behind c's.
#define MAXSIMD_WGMMA_16_BIT(types, n, count, a_name, b_name, accumulate_name)                    \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " accumulate_name                                \
               ", 0;\n"                                                                           \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." types " {" MAXSIMD_NAMES_##count \
               "}, " a_name ", " b_name ", p, 1, 1, 0, 0;\n}"                                     \
               : MAXSIMD_SUMS_##count(0)                                                          \
               : "l"(WholeDescriptor(a)), "l"(WholeDescriptor(b)),                                \
                 "r"(static_cast<int>(accumulate)))

#define MAXSIMD_DEFINE_WGMMA(n, count, a_name, b_name, accumulate_name)                     \
  template <ElementType kType>                                                              \
  __device__ inline void Wgmma(float(&c)[count], uint32_t a, uint32_t b, bool accumulate) { \
    if constexpr (kType == ElementType::kFloat16) {                                         \
      MAXSIMD_WGMMA_16_BIT("f16.f16", n, count, a_name, b_name, accumulate_name);           \
    } else {                                                                                \
      MAXSIMD_WGMMA_16_BIT("bf16.bf16", n, count, a_name, b_name, accumulate_name);         \
    }                                                                                       \
  }

MAXSIMD_DEFINE_WGMMA(32, 16, "%16", "%17", "%18")
MAXSIMD_DEFINE_WGMMA(64, 32, "%32", "%33", "%34")
MAXSIMD_DEFINE_WGMMA(128, 64, "%64", "%65", "%66")
MAXSIMD_DEFINE_WGMMA(256, 128, "%128", "%129", "%130")

#define MAXSIMD_DEFINE_WGMMA_TF32(n, count, a_names, b_name, accumulate_name)                      \
  __device__ inline void WgmmaTf32(float(&c)[count], const uint32_t(&a)[4], uint32_t b,            \
                                   bool accumulate) {                                              \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " accumulate_name                               \
                 ", 0;\n"                                                                          \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" MAXSIMD_NAMES_##count \
                 "}, {" a_names "}, " b_name ", p, 1, 1;\n}"                                       \
                 : MAXSIMD_SUMS_##count(0)                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(WholeDescriptor(b)),            \
                   "r"(static_cast<int>(accumulate)));                                             \
  }

MAXSIMD_DEFINE_WGMMA_TF32(32, 16, "%16, %17, %18, %19", "%20", "%21")
MAXSIMD_DEFINE_WGMMA_TF32(64, 32, "%32, %33, %34, %35", "%36", "%37")
MAXSIMD_DEFINE_WGMMA_TF32(128, 64, "%64, %65, %66, %67", "%68", "%69")

#undef MAXSIMD_DEFINE_WGMMA_TF32
#undef MAXSIMD_DEFINE_WGMMA
#undef MAXSIMD_WGMMA_16_BIT
#undef MAXSIMD_SUMS_128
#undef MAXSIMD_SUMS_64
#undef MAXSIMD_SUMS_32
#undef MAXSIMD_SUMS_16
#undef MAXSIMD_SUMS_4
#undef MAXSIMD_NAMES_128
#undef MAXSIMD_NAMES_64
#undef MAXSIMD_NAMES_32
#undef MAXSIMD_NAMES_16

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_WGMMA_CUH_
