// What must hold of a chunk's units, checked the slow and obvious way.
#ifndef MAXSIMD_TESTS_SERVER_CODEC_UNIT_CHECK_H_
#define MAXSIMD_TESTS_SERVER_CODEC_UNIT_CHECK_H_

#include <string>

#include "server/codec/limits.h"
#include "server/codec/request.h"

namespace maxsimd {

// Empty when order, empty and units are right, else what is wrong: every document with tokens is in
// exactly one unit, which covers its rows and no row beyond its documents'; units are connected,
// ordered, within the caps, and never cut without a reason.
std::string UnitsProblem(const DocumentChunk& chunk, const Query& query, const UnitLimits& limits);

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_SERVER_CODEC_UNIT_CHECK_H_
