#include "tests/server/codec/decode_check.h"

#include <gtest/gtest.h>

#include "tests/server/codec/random_message.h"

namespace maxsimd {
namespace {

// What a client might send to the entry, or might not.
std::string RandomInput(DecoderEntry entry, Random* random) {
  const v1::RerankRequest request = RandomRequest(random);
  if (entry == DecoderEntry::kRerank) return EncodeRandomly(request, random);
  v1::RerankStreamRequest start;
  *start.mutable_start() = request;
  v1::RerankStreamRequest documents;
  *documents.mutable_documents() =
      OneIn(4, random) ? request.documents() : RandomDocuments(CheckedStreamQuery(), random);
  std::string bytes;
  // The later member of a oneof displaces the earlier.
  bool last_is_start = entry == DecoderEntry::kStreamStart;
  if (OneIn(10, random)) last_is_start = !last_is_start;
  while (OneIn(5, random)) bytes += EncodeRandomly(OneIn(2, random) ? start : documents, random);
  return bytes + EncodeRandomly(last_is_start ? start : documents, random);
}

class DecodeCheckTest : public testing::TestWithParam<int> {};

TEST_P(DecodeCheckTest, WellFormedMessagesDecodeAsTheGeneratedParserReadsThem) {
  const auto entry = static_cast<DecoderEntry>(GetParam());
  Random random(1);
  for (int i = 0; i < 6000; ++i) {
    const std::string input = RandomInput(entry, &random);
    ASSERT_EQ(DecoderDifference(entry, input, i), "") << i;
  }
}

TEST_P(DecodeCheckTest, MutatedMessagesAreRefusedWhereTheGeneratedParserRefusesThem) {
  const auto entry = static_cast<DecoderEntry>(GetParam());
  Random random(2);
  for (int i = 0; i < 12000; ++i) {
    std::string input = RandomInput(entry, &random);
    Mutate(&input, &random);
    ASSERT_EQ(DecoderDifference(entry, input, i), "") << i;
  }
}

TEST_P(DecodeCheckTest, EveryTruncationIsJudgedAsTheGeneratedParserDoes) {
  const auto entry = static_cast<DecoderEntry>(GetParam());
  Random random(3);
  for (int i = 0; i < 30; ++i) {
    const std::string input = RandomInput(entry, &random);
    for (size_t size = 0; size < input.size(); ++size) {
      ASSERT_EQ(DecoderDifference(entry, input.substr(0, size), i), "") << i << " " << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Entries, DecodeCheckTest, testing::Range(0, kDecoderEntries));

}  // namespace
}  // namespace maxsimd
