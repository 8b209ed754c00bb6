// The element types that embeddings come in, and their sizes.
//
// All are little-endian IEEE: binary32, binary16, and bfloat16 (the upper half of a binary32).
#ifndef MAXSIMD_KERNELS_ELEMENT_TYPE_H_
#define MAXSIMD_KERNELS_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace maxsimd {

enum class ElementType : uint8_t { kFloat32, kFloat16, kBfloat16 };

constexpr size_t ElementBytes(ElementType type) {
  return type == ElementType::kFloat32 ? 4 : 2;
}

constexpr absl::string_view ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBfloat16:
      return "bfloat16";
  }
  return "unknown";
}

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_ELEMENT_TYPE_H_
