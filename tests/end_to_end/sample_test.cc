// Real input: the passages and queries of tests/data/sample/, as a user would send them.
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "client/rerank_client.h"
#include "client/tensor_file.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

constexpr char kSample[] = MAXSIMD_TEST_DATA "/data/sample/";

// All texts' token embeddings, back to back, and how many tokens each has.
struct Texts {
  TensorFile file;
  TokenMatrixView tokens;
  std::vector<uint32_t> lengths;
};

Texts ReadTexts(const std::string& name) {
  Texts texts;
  texts.file = ReadTensorFile(kSample + name).value();
  texts.tokens = ToTokenMatrix(*texts.file.Find("tokens"), v1::ELEMENT_TYPE_UNSPECIFIED).value();
  texts.lengths = ToLengths(*texts.file.Find("lengths")).value();
  return texts;
}

TEST(SampleTest, RanksThePassageFirstThatAnswersTheQuery) {
  const Texts queries = ReadTexts("queries.safetensors");
  const Texts passages = ReadTexts("passages.safetensors");
  const nlohmann::json expected =
      nlohmann::json::parse(std::ifstream(std::string(kSample) + "expected.json"));
  ASSERT_EQ(expected.size(), queries.lengths.size());
  TestServer server;
  RerankClient client(server.channel());
  size_t first_row = 0;
  for (size_t q = 0; q < expected.size(); ++q) {
    const size_t row_bytes = RowBytes(queries.tokens);
    RerankInput input;
    input.query = queries.tokens;
    input.query.data =
        queries.tokens.data.substr(first_row * row_bytes, queries.lengths[q] * row_bytes);
    input.documents = passages.tokens;
    input.lengths = passages.lengths;
    input.options.set_top_k(3);
    const absl::StatusOr<RerankResult> result = client.Rerank(input, {});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->documents.size(), 3u);
    EXPECT_EQ(result->documents[0].index(), expected[q]["answer"]) << "query " << q;
    for (int rank = 0; rank < 3; ++rank) {
      const nlohmann::json& top = expected[q]["top"][rank];
      EXPECT_EQ(result->documents[rank].index(), top["index"]);
      // Unit rows: each query token's sum of magnitudes is at most 1.
      EXPECT_NEAR(result->documents[rank].score(), top["score"].get<double>(),
                  1e-5 * queries.lengths[q]);
    }
    first_row += queries.lengths[q];
  }
}

}  // namespace
}  // namespace maxsimd
