// The only place where a cudaError_t becomes a Status.
//
// Errors: ResourceExhausted   no memory, on the device or page-locked
//         FailedPrecondition  no device, a driver older than the runtime, no code for the device
//         Internal            anything else
#ifndef MAXSIMD_KERNELS_CUDA_CUDA_STATUS_H_
#define MAXSIMD_KERNELS_CUDA_CUDA_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <cuda_runtime.h>

#include "kernels/status_macros.h"

namespace maxsimd::cuda {

inline absl::Status ToStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat("cuda: ", what, ": ", cudaGetErrorString(error), " (",
                                           cudaGetErrorName(error), ")");
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return absl::FailedPreconditionError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace maxsimd::cuda

#endif  // MAXSIMD_KERNELS_CUDA_CUDA_STATUS_H_
