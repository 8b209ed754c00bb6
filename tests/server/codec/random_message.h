// Random requests, and random ways to write one down: the inputs of the codec's tests.
#ifndef MAXSIMD_TESTS_SERVER_CODEC_RANDOM_MESSAGE_H_
#define MAXSIMD_TESTS_SERVER_CODEC_RANDOM_MESSAGE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/message.h"

#include "maxsimd/v1/rerank.pb.h"
#include "server/codec/message_view.h"

namespace maxsimd {

using Random = std::mt19937;

// Uniform in [0, bound).
inline uint32_t Below(uint32_t bound, Random* random) {
  return (*random)() % bound;
}
inline bool OneIn(uint32_t n, Random* random) {
  return Below(n, random) == 0;
}

// Mostly valid, within small limits; else with one or two things wrong.
v1::RerankRequest RandomRequest(Random* random);

// Documents for that query; sometimes none.
v1::Documents RandomDocuments(const v1::TokenMatrix& query, Random* random);

// One of the many encodings of the message: fields in any order, overridden earlier values,
// repeated scalars packed and not, submessages in parts, overlong varints, unknown fields and
// groups.
std::string EncodeRandomly(const google::protobuf::Message& message, Random* random);

// Changes, drops, repeats or inserts a few bytes, or cuts the end off.
void Mutate(std::string* bytes, Random* random);

// Owns copies of the slices, each in an allocation of exactly its size, so that AddressSanitizer
// sees a step over its end.
class SlicedMessage {
 public:
  // About 1 in 4 cuts everywhere, else few; some slices are empty.
  SlicedMessage(const std::string& bytes, Random* random);

  const MessageView& view() const { return view_; }

 private:
  std::vector<std::vector<std::byte>> slices_;
  MessageView view_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_SERVER_CODEC_RANDOM_MESSAGE_H_
