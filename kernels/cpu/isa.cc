#include "kernels/cpu/isa.h"

#include <fstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

#include "kernels/cpu/cpu_kernel_list.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace maxsimd {
namespace {

#if defined(__x86_64__)

bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// __builtin_cpu_supports also asks whether the system saves the registers.
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c();
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool HasAvx512Bf16() {
  return HasAvx512() && __builtin_cpu_supports("avx512bf16");
}

// The tiles' 8 KiB of state must be asked for; the permission is the whole process's.
bool HasAmxBf16() {
  constexpr unsigned kAmxBf16 = 1u << 22;  // Leaf 7, edx.
  constexpr unsigned kAmxTile = 1u << 24;
  constexpr int kRequestStatePermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;                    // XFEATURE_XTILEDATA
  unsigned eax, ebx, ecx, edx;
  if (!HasAvx512() || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kAmxBf16) == 0 || (edx & kAmxTile) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestStatePermission, kTileData) == 0;
}

std::vector<const CpuKernel*> FindKernels() {
  std::vector<const CpuKernel*> kernels;
  if (HasAmxBf16()) kernels.push_back(&kAmxBf16Kernel);
  // Intel's VDPBF16PS takes four times as long as a fused multiply-add (43 against 87 billion
  // multiply-adds/s on an Emerald Rapids core, 2026-11), AMD's as long: there it wins.
  const bool is_intel = __builtin_cpu_is("intel");
  if (HasAvx512Bf16() && !is_intel) kernels.push_back(&kAvx512Bf16Kernel);
  if (HasAvx512()) kernels.push_back(&kAvx512Kernel);
  if (HasAvx512Bf16() && is_intel) kernels.push_back(&kAvx512Bf16Kernel);
  if (HasAvx2()) kernels.push_back(&kAvx2Kernel);
  kernels.push_back(&kScalarKernel);
  return kernels;
}

#elif defined(__aarch64__)

std::vector<const CpuKernel*> FindKernels() {
  return {&kNeonKernel, &kScalarKernel};
}

#else

std::vector<const CpuKernel*> FindKernels() {
  return {&kScalarKernel};
}

#endif

}  // namespace

absl::Span<const CpuKernel* const> SupportedCpuKernels() {
  static const auto& kernels = *new std::vector<const CpuKernel*>(FindKernels());
  return kernels;
}

absl::Span<const CpuKernel* const> CompiledCpuKernels() {
  static const CpuKernel* const kKernels[] = {
#if defined(__x86_64__)
    &kAmxBf16Kernel,
    &kAvx512Bf16Kernel,
    &kAvx512Kernel,
    &kAvx2Kernel,
#elif defined(__aarch64__)
    &kNeonKernel,
#endif
    &kScalarKernel
  };
  return kKernels;
}

std::string CpuModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (absl::StartsWith(line, "model name") && colon != std::string::npos) {
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
  }
  return "CPU";
}

}  // namespace maxsimd
