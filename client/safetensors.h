// Reads the .safetensors format: tensors by name.  Pure; allocates in proportion to the header.
//
//   file = uint64 header_bytes, header (JSON), data
//   header = {"name": {"dtype": "F16", "shape": [3, 4], "data_offsets": [begin, end]}, ...}
//
// Tensors must fill the data without overlaps and gaps, as the format demands.  Those of other
// types than F32, F16, BF16, U16, I32, U32, I64 and U64 are checked and left out. Errors:
// InvalidArgument, with the name and what was expected. Source:
// https://github.com/huggingface/safetensors, "Format".
#ifndef MAXSIMD_CLIENT_SAFETENSORS_H_
#define MAXSIMD_CLIENT_SAFETENSORS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/tensor.h"

namespace maxsimd {

using TensorMap = std::map<std::string, TensorView>;

// The tensors view `file`; `name` goes into messages.
absl::StatusOr<TensorMap> ParseSafetensors(absl::string_view file, absl::string_view name);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_SAFETENSORS_H_
