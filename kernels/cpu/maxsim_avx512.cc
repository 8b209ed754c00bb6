// The kernel for AVX-512 F, BW, DQ and VL.
#include "kernels/cpu/cpu_kernel_list.h"
#include "kernels/cpu/vector_avx512.h"

namespace maxsimd {
namespace {

constexpr CpuArithmetic kArithmetic = MakeArithmetic<Avx512>();

}  // namespace

const CpuKernel kAvx512Kernel = {"avx512", {&kArithmetic}};

}  // namespace maxsimd
