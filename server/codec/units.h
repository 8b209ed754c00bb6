// Documents to units of packing: connected runs of rows, in the order of the tensor.
//
// A document joins the unit before it where it overlaps that unit's rows, or begins where they end
// and both are small together (gather_bytes); unless the unit would exceed max_multiply_adds or
// max_result_bytes, which only a single document may.
#ifndef MAXSIMD_SERVER_CODEC_UNITS_H_
#define MAXSIMD_SERVER_CODEC_UNITS_H_

#include "server/codec/limits.h"
#include "server/codec/request.h"

namespace maxsimd {

// Fills `order`, `empty` and `units` from `documents`, `ids` and `row_bytes`.  Rows are numbered
// below 2^32.
void BuildUnits(const Query& query, const UnitLimits& limits, DocumentChunk* chunk);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_UNITS_H_
