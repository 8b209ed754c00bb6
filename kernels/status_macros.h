// RETURN_IF_ERROR and ASSIGN_OR_RETURN: the project's only macros beside header guards.
//
// The distribution's Abseil (20220623) ships neither.
#ifndef MAXSIMD_KERNELS_STATUS_MACROS_H_
#define MAXSIMD_KERNELS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define MAXSIMD_CONCAT_INNER(a, b) a##b
#define MAXSIMD_CONCAT(a, b) MAXSIMD_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                     \
    if (absl::Status status_or_ok = (expression); !status_or_ok.ok()) return status_or_ok; \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression)                               \
  auto MAXSIMD_CONCAT(value_or_status_, __LINE__) = (expression);          \
  if (!MAXSIMD_CONCAT(value_or_status_, __LINE__).ok())                    \
    return std::move(MAXSIMD_CONCAT(value_or_status_, __LINE__)).status(); \
  target = *std::move(MAXSIMD_CONCAT(value_or_status_, __LINE__))

#endif  // MAXSIMD_KERNELS_STATUS_MACROS_H_
