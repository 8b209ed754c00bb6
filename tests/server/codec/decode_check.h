// Holds the decoder against the generated parser and the naive validation.
#ifndef MAXSIMD_TESTS_SERVER_CODEC_DECODE_CHECK_H_
#define MAXSIMD_TESTS_SERVER_CODEC_DECODE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {

enum class DecoderEntry { kRerank, kStreamStart, kStreamDocuments };
inline constexpr int kDecoderEntries = 3;

// Empty when the decoder does with `message`, cut into slices at random, exactly what the generated
// parser and the contract demand; else what differs.
std::string DecoderDifference(DecoderEntry entry, const std::string& message, uint32_t slice_seed);

// The tokens of the query that kStreamDocuments decodes against.
v1::TokenMatrix CheckedStreamQuery();

// One input of a fuzzer: the first byte picks the entry and the slices, the rest is the message.
// Aborts on a difference; else 0.
int CheckDecoder(const uint8_t* data, size_t size);

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_SERVER_CODEC_DECODE_CHECK_H_
