// Every way in which a request can be wrong or too much: code, word and trailer, over both RPCs.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

#include "tests/testing/raw_call.h"
#include "tests/testing/requests.h"
#include "tests/testing/test_server.h"

namespace maxsimd {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void ExpectRefused(const Outcome& outcome, grpc::StatusCode code, const std::string& word) {
  EXPECT_EQ(outcome.status.error_code(), code) << outcome.status.error_message();
  EXPECT_NE(outcome.status.error_message().find(word), std::string::npos)
      << outcome.status.error_message();
  EXPECT_EQ(outcome.pushback, code == grpc::StatusCode::RESOURCE_EXHAUSTED ? "-1" : "");
}

// What is wrong with a request of two documents (3 and 5 tokens, dim 16, float16; 4 query tokens).
struct Mistake {
  std::string name;
  std::string word;  // That the message holds.
  std::function<void(v1::RerankRequest&)> make;
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.name;
}

v1::TokenMatrix& QueryTokens(v1::RerankRequest& request) {
  return *request.mutable_query()->mutable_tokens();
}
v1::TokenMatrix& Tokens(v1::RerankRequest& request) {
  return *request.mutable_documents()->mutable_tokens();
}
v1::Documents& Documents(v1::RerankRequest& request) {
  return *request.mutable_documents();
}

void SetWeights(v1::RerankRequest& request, const std::vector<float>& weights) {
  for (const float weight : weights) request.mutable_query()->add_token_weights(weight);
}

std::vector<Mistake> QueryMistakes() {
  return {
      {"NoQuery", "tokens", [](auto& r) { r.clear_query(); }},
      {"NoQueryTokens", "tokens", [](auto& r) { r.mutable_query()->clear_tokens(); }},
      {"NoQueryElementType", "element_type", [](auto& r) { QueryTokens(r).clear_element_type(); }},
      {"UnknownQueryElementType", "element_type",
       [](auto& r) { QueryTokens(r).set_element_type(static_cast<v1::ElementType>(77)); }},
      {"NegativeQueryElementType", "element_type",
       [](auto& r) { QueryTokens(r).set_element_type(static_cast<v1::ElementType>(-1)); }},
      {"NoQueryDim", "dim", [](auto& r) { QueryTokens(r).set_dim(0); }},
      {"NoQueryData", "data", [](auto& r) { QueryTokens(r).clear_data(); }},
      {"QueryDataNotWholeRows", "data", [](auto& r) { QueryTokens(r).mutable_data()->pop_back(); }},
      {"QueryNan", "data",
       [](auto& r) { QueryTokens(r).mutable_data()->replace(0, 2, "\x01\x7c", 2); }},
      {"QueryInfinity", "data",
       [](auto& r) { QueryTokens(r).mutable_data()->replace(126, 2, "\x00\xfc", 2); }},
      {"QueryNanWithoutDocuments", "data",
       [](auto& r) {
         QueryTokens(r).mutable_data()->replace(0, 2, "\x01\x7c", 2);
         r.clear_documents();
       }},
      {"TooFewWeights", "token_weights",
       [](auto& r) {
         SetWeights(r, {1, 1, 1});
       }},
      {"TooManyWeights", "token_weights",
       [](auto& r) {
         SetWeights(r, {1, 1, 1, 1, 1});
       }},
      {"NanWeight", "token_weights",
       [](auto& r) {
         SetWeights(r, {1, kNan, 1, 1});
       }},
      {"InfiniteWeight", "token_weights",
       [](auto& r) {
         SetWeights(r, {1, 1, 1, -kInfinity});
       }},
      {"MeanOfWeightsThatCancel", "token_weights",
       [](auto& r) {
         SetWeights(r, {1, -1, 2, -2});
         r.mutable_options()->set_aggregation(v1::AGGREGATION_MEAN);
       }},
      {"MeanOfNegativeWeights", "token_weights",
       [](auto& r) {
         SetWeights(r, {-1, -1, -1, -1});
         r.mutable_options()->set_aggregation(v1::AGGREGATION_MEAN);
       }},
      {"UnknownAggregation", "aggregation",
       [](auto& r) { r.mutable_options()->set_aggregation(static_cast<v1::Aggregation>(9)); }},
  };
}

std::vector<Mistake> DocumentMistakes() {
  return {
      {"NoElementType", "element_type", [](auto& r) { Tokens(r).clear_element_type(); }},
      {"UnknownElementType", "element_type",
       [](auto& r) { Tokens(r).set_element_type(static_cast<v1::ElementType>(4)); }},
      {"OtherElementType", "element_type",
       [](auto& r) { Tokens(r).set_element_type(v1::ELEMENT_TYPE_BFLOAT16); }},
      {"OtherElementTypeWithoutDocuments", "element_type",
       [](auto& r) {
         r.clear_documents();
         Tokens(r).set_element_type(v1::ELEMENT_TYPE_FLOAT32);
       }},
      {"NoDim", "dim", [](auto& r) { Tokens(r).set_dim(0); }},
      {"OtherDim", "dim", [](auto& r) { Tokens(r).set_dim(8); }},
      {"OtherDimWithoutDocuments", "dim",
       [](auto& r) {
         r.clear_documents();
         Tokens(r).set_dim(8);
       }},
      {"DataNotWholeRows", "data", [](auto& r) { Tokens(r).mutable_data()->push_back('x'); }},
      {"NoTokens", "tokens", [](auto& r) { Documents(r).clear_tokens(); }},
      {"NoLengths", "lengths", [](auto& r) { Documents(r).clear_lengths(); }},
      {"LengthsTooShort", "lengths", [](auto& r) { Documents(r).set_lengths(1, 4); }},
      {"LengthsTooLong", "lengths", [](auto& r) { Documents(r).set_lengths(1, 6); }},
      {"TooFewOffsets", "offsets", [](auto& r) { Documents(r).add_offsets(0); }},
      {"TooManyOffsets", "offsets",
       [](auto& r) {
         for (int i = 0; i < 3; ++i) Documents(r).add_offsets(0);
       }},
      {"OffsetBeyondTheRows", "offsets",
       [](auto& r) {
         Documents(r).add_offsets(0);
         Documents(r).add_offsets(4);
       }},
      {"OffsetThatWrapsAround", "offsets",
       [](auto& r) {
         Documents(r).add_offsets(std::numeric_limits<uint64_t>::max());
         Documents(r).add_offsets(0);
       }},
      {"OffsetOfAnEmptyDocumentBeyondTheRows", "offsets",
       [](auto& r) {
         Documents(r).set_lengths(1, 0);
         Documents(r).add_offsets(0);
         Documents(r).add_offsets(9);
       }},
      {"OffsetsWithoutDocuments", "offsets",
       [](auto& r) {
         r.clear_documents();
         Documents(r).add_offsets(0);
       }},
      {"TooFewIds", "ids", [](auto& r) { Documents(r).add_ids("a"); }},
      {"TooManyIds", "ids",
       [](auto& r) {
         for (int i = 0; i < 3; ++i) Documents(r).add_ids("a");
       }},
      {"IdsWithoutDocuments", "ids",
       [](auto& r) {
         r.clear_documents();
         Documents(r).add_ids("a");
       }},
  };
}

std::vector<Mistake> Excesses() {
  const auto exhausted = grpc::StatusCode::RESOURCE_EXHAUSTED;
  return {
      {"Dim", "max_dim",
       [](auto& r) { r = MakeRequest({.dim = 4097, .query_tokens = 1, .lengths = {1}}); },
       exhausted},
      {"QueryTokens", "max_query_tokens",
       [](auto& r) { r = MakeRequest({.dim = 1, .query_tokens = 4097, .lengths = {1}}); },
       exhausted},
      {"DocumentTokens", "max_document_tokens",
       [](auto& r) { r = MakeRequest({.dim = 1, .query_tokens = 1, .lengths = {65537}}); },
       exhausted},
      {"Documents", "max_documents_per_message",
       [](auto& r) { r = MakeUniformRequest(100'001, 0, {.dim = 1}); }, exhausted},
      {"IdBytes", "max_id_bytes",
       [](auto& r) {
         Documents(r).add_ids(std::string(257, 'x'));
         Documents(r).add_ids("");
       },
       exhausted},
      {"MultiplyAdds", "max_multiply_adds_per_message",
       [](auto& r) {
         // 60,000 times 500 rows of dim 128 for 4,096 query tokens: 1.6e13.
         r = MakeRequest({.dim = 128, .query_tokens = 4096, .lengths = {500}});
         Documents(r).clear_lengths();
         for (int i = 0; i < 60'000; ++i) {
           Documents(r).add_lengths(500);
           Documents(r).add_offsets(0);
         }
       },
       exhausted},
      {"HeldResultBytes", "max_held_result_bytes",
       [](auto& r) {
         // 90,000 results, each with 256 matches.
         r = MakeUniformRequest(90'000, 1, {.dim = 1, .query_tokens = 256});
         r.mutable_options()->set_top_k(100'000);
         r.mutable_options()->set_return_matches(true);
       },
       exhausted},
  };
}

class CallErrorTest : public ::testing::TestWithParam<Mistake> {
 protected:
  void TearDown() override {
    // Nobody else pays: the next call is served, and nothing of this one is left.
    EXPECT_TRUE(
        Exchange(server_.channel(), kRerankMethod, {ToBuffer(MakeRequest({}))}).status.ok());
    EXPECT_TRUE(server_.BecomesIdle());
  }

  TestServer server_;
};

class RequestErrorTest : public CallErrorTest {};
class ChunkErrorTest : public CallErrorTest {};

TEST_P(RequestErrorTest, RerankNamesIt) {
  v1::RerankRequest request = MakeRequest({});
  GetParam().make(request);
  ExpectRefused(Exchange(server_.channel(), kRerankMethod, {ToBuffer(request)}), GetParam().code,
                GetParam().word);
}

TEST_P(RequestErrorTest, RerankStreamNamesItInItsStart) {
  v1::RerankStreamRequest message;
  *message.mutable_start() = MakeRequest({});
  GetParam().make(*message.mutable_start());
  ExpectRefused(Exchange(server_.channel(), kRerankStreamMethod, {ToBuffer(message)}),
                GetParam().code, GetParam().word);
}

TEST_P(ChunkErrorTest, RerankStreamNamesItInALaterMessage) {
  v1::RerankRequest request = MakeRequest({});
  const std::vector<v1::RerankStreamRequest> right = Cut(request, {1});
  GetParam().make(request);
  // As the second of two chunks, with the query that it goes with.
  v1::RerankStreamRequest start;
  *start.mutable_start()->mutable_query() = request.query();
  *start.mutable_start()->mutable_options() = request.options();
  v1::RerankStreamRequest wrong;
  *wrong.mutable_documents() = request.documents();
  ExpectRefused(
      Exchange(server_.channel(), kRerankStreamMethod, {ToBuffer(start), ToBuffer(wrong)}),
      GetParam().code, GetParam().word);
}

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Query, RequestErrorTest, ::testing::ValuesIn(QueryMistakes()), kName);
INSTANTIATE_TEST_SUITE_P(Documents, RequestErrorTest, ::testing::ValuesIn(DocumentMistakes()),
                         kName);
INSTANTIATE_TEST_SUITE_P(Limit, RequestErrorTest, ::testing::ValuesIn(Excesses()), kName);
INSTANTIATE_TEST_SUITE_P(Documents, ChunkErrorTest, ::testing::ValuesIn(DocumentMistakes()), kName);
INSTANTIATE_TEST_SUITE_P(Limit, ChunkErrorTest, ::testing::ValuesIn([] {
                           std::vector<Mistake> excesses = Excesses();
                           // A query's limits concern no later message.
                           excesses.erase(excesses.begin(), excesses.begin() + 2);
                           return excesses;
                         }()),
                         kName);

}  // namespace
}  // namespace maxsimd
