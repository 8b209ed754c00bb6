// A tensor in memory, and what the client makes of one.  Pure.
//
// Shapes: row-major, little-endian.  A matrix of embeddings is [rows, dim], or [documents, tokens,
// dim] where all documents are equally long; lengths, offsets and weights are [n].
// Errors: InvalidArgument, with the tensor's name and what was expected.
// Lifetime: views view the file's bytes.
#ifndef MAXSIMD_CLIENT_TENSOR_H_
#define MAXSIMD_CLIENT_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/rerank_types.h"

namespace maxsimd {

enum class TensorType {
  kFloat32,
  kFloat16,
  kBfloat16,
  kUint16,  // In .npy, the bits of bfloat16.
  kInt32,
  kUint32,
  kInt64,
  kUint64,
};

uint64_t TensorTypeBytes(TensorType type);
absl::string_view TensorTypeName(TensorType type);

struct TensorView {
  std::string name;  // For messages: the file's, and the tensor's where a file has several.
  TensorType type = TensorType::kFloat32;
  std::vector<uint64_t> shape;
  absl::string_view data;  // Exactly as many bytes as type and shape say.
};

// Bytes of a tensor of this shape; InvalidArgument where that is beyond 64 bits.
absl::StatusOr<uint64_t> ShapeBytes(TensorType type, const std::vector<uint64_t>& shape,
                                    absl::string_view name);

// "[3, 4]".
std::string ShapeText(const std::vector<uint64_t>& shape);

// A 2-D tensor, or a 3-D one as its rows.  `expected` is what the user said it is, UNSPECIFIED
// where nothing; uint16 counts as bfloat16 only where the user says so.
absl::StatusOr<TokenMatrixView> ToTokenMatrix(const TensorView& tensor, v1::ElementType expected);

absl::StatusOr<std::vector<uint32_t>> ToLengths(const TensorView& tensor);
absl::StatusOr<std::vector<uint64_t>> ToOffsets(const TensorView& tensor);
absl::StatusOr<std::vector<float>> ToWeights(const TensorView& tensor);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_TENSOR_H_
