#include "client/tensor.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

absl::Status Unfit(const TensorView& tensor, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(tensor.name, ": expected ", expected, ", found ",
                                                 TensorTypeName(tensor.type), " ",
                                                 ShapeText(tensor.shape)));
}

v1::ElementType ElementTypeOf(TensorType type, v1::ElementType expected) {
  switch (type) {
    case TensorType::kFloat32:
      return v1::ELEMENT_TYPE_FLOAT32;
    case TensorType::kFloat16:
      return v1::ELEMENT_TYPE_FLOAT16;
    case TensorType::kBfloat16:
      return v1::ELEMENT_TYPE_BFLOAT16;
    case TensorType::kUint16:
      return expected == v1::ELEMENT_TYPE_BFLOAT16 ? v1::ELEMENT_TYPE_BFLOAT16
                                                   : v1::ELEMENT_TYPE_UNSPECIFIED;
    default:
      return v1::ELEMENT_TYPE_UNSPECIFIED;
  }
}

// Element i of a tensor whose elements are `T`; files promise no alignment.
template <typename T>
T ElementAt(const TensorView& tensor, size_t i) {
  T value;
  std::memcpy(&value, tensor.data.data() + i * sizeof(T), sizeof(T));
  return value;
}

// An integer, and whether it is below 0.
std::pair<uint64_t, bool> IntegerAt(const TensorView& tensor, size_t i) {
  const auto with_sign = [](int64_t value) {
    return std::pair<uint64_t, bool>(static_cast<uint64_t>(value), value < 0);
  };
  switch (tensor.type) {
    case TensorType::kInt32:
      return with_sign(ElementAt<int32_t>(tensor, i));
    case TensorType::kInt64:
      return with_sign(ElementAt<int64_t>(tensor, i));
    case TensorType::kUint32:
      return {ElementAt<uint32_t>(tensor, i), false};
    default:
      return {ElementAt<uint64_t>(tensor, i), false};
  }
}

template <typename T>
absl::StatusOr<std::vector<T>> ToIntegers(const TensorView& tensor) {
  const bool integers = tensor.type == TensorType::kInt32 || tensor.type == TensorType::kUint32 ||
                        tensor.type == TensorType::kInt64 || tensor.type == TensorType::kUint64;
  if (!integers || tensor.shape.size() != 1) {
    return Unfit(tensor, "int32, uint32, int64 or uint64 [documents]");
  }
  std::vector<T> values(tensor.data.size() / TensorTypeBytes(tensor.type));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto [value, negative] = IntegerAt(tensor, i);
    if (negative || value > std::numeric_limits<T>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.name, ": element ", i, " is ",
                       negative ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(value),
                       ", expected 0 to ", std::numeric_limits<T>::max()));
    }
    values[i] = static_cast<T>(value);
  }
  return values;
}

}  // namespace

uint64_t TensorTypeBytes(TensorType type) {
  switch (type) {
    case TensorType::kFloat16:
    case TensorType::kBfloat16:
    case TensorType::kUint16:
      return 2;
    case TensorType::kFloat32:
    case TensorType::kInt32:
    case TensorType::kUint32:
      return 4;
    case TensorType::kInt64:
    case TensorType::kUint64:
      return 8;
  }
  return 0;
}

absl::string_view TensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return "float32";
    case TensorType::kFloat16:
      return "float16";
    case TensorType::kBfloat16:
      return "bfloat16";
    case TensorType::kUint16:
      return "uint16";
    case TensorType::kInt32:
      return "int32";
    case TensorType::kUint32:
      return "uint32";
    case TensorType::kInt64:
      return "int64";
    case TensorType::kUint64:
      return "uint64";
  }
  return "unknown";
}

absl::StatusOr<uint64_t> ShapeBytes(TensorType type, const std::vector<uint64_t>& shape,
                                    absl::string_view name) {
  uint64_t bytes = TensorTypeBytes(type);
  for (uint64_t extent : shape) {
    // As if without extents of 0, so that the order of extents doesn't decide what overflows.
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": shape ", ShapeText(shape), " is beyond 64 bits"));
    }
  }
  for (uint64_t extent : shape) {
    if (extent == 0) return 0;
  }
  return bytes;
}

std::string ShapeText(const std::vector<uint64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<TokenMatrixView> ToTokenMatrix(const TensorView& tensor, v1::ElementType expected) {
  const v1::ElementType type = ElementTypeOf(tensor.type, expected);
  if (tensor.type == TensorType::kUint16 && type == v1::ELEMENT_TYPE_UNSPECIFIED) {
    return Unfit(tensor, "--element-type=bfloat16 beside uint16 elements");
  }
  const bool fits = type != v1::ELEMENT_TYPE_UNSPECIFIED &&
                    (expected == v1::ELEMENT_TYPE_UNSPECIFIED || expected == type);
  if (!fits) {
    return Unfit(tensor, expected == v1::ELEMENT_TYPE_UNSPECIFIED
                             ? std::string("float32, float16 or bfloat16")
                             : absl::StrCat("the element type asked for (",
                                            v1::ElementType_Name(expected), ")"));
  }
  if (tensor.shape.size() != 2 && tensor.shape.size() != 3) {
    return Unfit(tensor, "[rows, dim] or [documents, tokens, dim]");
  }
  const uint64_t dim = tensor.shape.back();
  if (dim == 0 || dim > std::numeric_limits<uint32_t>::max()) {
    return Unfit(tensor, "a last extent (dim) from 1 to 2^32 - 1");
  }
  return TokenMatrixView{type, static_cast<uint32_t>(dim), tensor.data};
}

absl::StatusOr<std::vector<uint32_t>> ToLengths(const TensorView& tensor) {
  return ToIntegers<uint32_t>(tensor);
}

absl::StatusOr<std::vector<uint64_t>> ToOffsets(const TensorView& tensor) {
  return ToIntegers<uint64_t>(tensor);
}

absl::StatusOr<std::vector<float>> ToWeights(const TensorView& tensor) {
  if (tensor.type != TensorType::kFloat32 || tensor.shape.size() != 1) {
    return Unfit(tensor, "float32 [query_tokens]");
  }
  std::vector<float> weights(tensor.data.size() / sizeof(float));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = ElementAt<float>(tensor, i);
  return weights;
}

}  // namespace maxsimd
