// Reads NumPy's .npy format: one tensor.  Pure; never allocates more than a header's worth.
//
// Versions 1 to 3, C order, little-endian '<f4' '<f2' '<u2' '<i4' '<u4' '<i8' '<u8'.
// Errors: InvalidArgument for everything else, with the name and what was expected.
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#ifndef MAXSIMD_CLIENT_NPY_H_
#define MAXSIMD_CLIENT_NPY_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/tensor.h"

namespace maxsimd {

// The tensor views `file`; `name` goes into messages.
absl::StatusOr<TensorView> ParseNpy(absl::string_view file, absl::string_view name);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_NPY_H_
