// One kernel per file, each compiled for its own instruction set.  Only SupportedCpuKernels knows
// which of them this machine may call.
#ifndef MAXSIMD_KERNELS_CPU_CPU_KERNEL_LIST_H_
#define MAXSIMD_KERNELS_CPU_CPU_KERNEL_LIST_H_

#include "kernels/cpu/cpu_kernel.h"

namespace maxsimd {

extern const CpuKernel kScalarKernel;
extern const CpuKernel kAvx2Kernel;
extern const CpuKernel kAvx512Kernel;
extern const CpuKernel kAvx512Bf16Kernel;
extern const CpuKernel kAmxBf16Kernel;
extern const CpuKernel kNeonKernel;

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_CPU_KERNEL_LIST_H_
