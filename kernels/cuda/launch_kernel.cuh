// One kernel launch that may begin before the one before it on its stream has ended (programmatic
// dependent launch).  A kernel so launched calls AllowNextLaunch first and WaitForPreviousLaunch
// before it ends, so that what follows it on the stream sees both; see launch.h for what the two
// must not share.
#ifndef MAXSIMD_KERNELS_CUDA_LAUNCH_KERNEL_CUH_
#define MAXSIMD_KERNELS_CUDA_LAUNCH_KERNEL_CUH_

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

namespace maxsimd::cuda {

struct LaunchSize {
  uint32_t blocks;
  int threads;
  size_t shared_bytes;
};

template <class... Params>
cudaError_t LaunchKernel(void (*kernel)(Params...), const LaunchSize& size, bool overlaps_previous,
                         cudaStream_t stream, const Params&... params) {
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = size.blocks;
  launch.blockDim = size.threads;
  launch.dynamicSmemBytes = size.shared_bytes;
  launch.stream = stream;
  launch.attrs = &overlap;
  launch.numAttrs = overlaps_previous ? 1 : 0;
  return cudaLaunchKernelEx(&launch, kernel, params...);
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_LAUNCH_KERNEL_CUH_
