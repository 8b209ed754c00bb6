// What a request may not exceed: the contract's `Limits` message, with the design's defaults.
//
// Over any of them a request is RESOURCE_EXHAUSTED and the message names the limit and its value.
#ifndef MAXSIMD_SERVER_CODEC_LIMITS_H_
#define MAXSIMD_SERVER_CODEC_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace maxsimd {

struct Limits {
  uint64_t max_message_bytes = uint64_t{64} << 20;
  uint64_t max_stream_message_bytes = uint64_t{4} << 20;
  uint32_t max_query_tokens = 4096;
  uint32_t max_document_tokens = 65536;
  uint32_t max_dim = 4096;
  uint32_t max_documents_per_message = 100'000;
  uint64_t max_documents_per_stream = uint64_t{1} << 32;
  uint32_t max_id_bytes = 256;
  uint64_t max_multiply_adds_per_message = 2'000'000'000'000;
  uint64_t max_held_result_bytes = uint64_t{64} << 20;
};

// How far documents are gathered into one unit of packing, and where a unit is cut; see Unit.
struct UnitLimits {
  // Documents that lie back to back are gathered up to here, so that 100,000 tiny documents don't
  // cost 100,000 units; small against a packed buffer, so that turns between calls stay fair.
  size_t gather_bytes = size_t{64} << 10;

  // Above these a unit is cut between two documents, even where they overlap (the shared rows are
  // then copied once per part): a unit occupies the device whole, and its results are held whole.
  uint64_t max_multiply_adds = uint64_t{1} << 30;
  size_t max_result_bytes = size_t{1} << 20;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_LIMITS_H_
