// Exact conversions between the element types and float32, in portable code.
//
// Precision: to float32 is exact, subnormals included.  From float32 rounds to nearest, ties to
// even; what rounds beyond the largest finite value becomes infinity, NaN stays NaN.
//
// Not for inner loops: the kernels convert with the processor's own instructions.
#ifndef MAXSIMD_KERNELS_ELEMENT_CONVERSION_H_
#define MAXSIMD_KERNELS_ELEMENT_CONVERSION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/element_type.h"

namespace maxsimd {

float Float16ToFloat32(uint16_t bits);
uint16_t Float32ToFloat16(float value);

float Bfloat16ToFloat32(uint16_t bits);
uint16_t Float32ToBfloat16(float value);

// Element `index` of an array of elements; any alignment.
float LoadElement(ElementType type, const std::byte* elements, size_t index);
// Rounds `value` to the type.
void StoreElement(ElementType type, float value, std::byte* elements, size_t index);

// Whether none of `count` elements is NaN or infinite; any alignment.
bool AllFinite(ElementType type, const std::byte* elements, size_t count);

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_ELEMENT_CONVERSION_H_
