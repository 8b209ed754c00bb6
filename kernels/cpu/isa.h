// Which instruction sets this build and this machine have.
#ifndef MAXSIMD_KERNELS_CPU_ISA_H_
#define MAXSIMD_KERNELS_CPU_ISA_H_

#include <string>

#include "absl/types/span.h"

#include "kernels/cpu/cpu_kernel.h"

namespace maxsimd {

// What this machine can run, best first; "scalar" is always last.
absl::Span<const CpuKernel* const> SupportedCpuKernels();

// All kernels of this build, also those that this machine lacks: not to be called.
absl::Span<const CpuKernel* const> CompiledCpuKernels();

// The processor's name for people, e.g. "Intel(R) Xeon(R) Processor"; "CPU" where unknown.
std::string CpuModelName();

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_ISA_H_
