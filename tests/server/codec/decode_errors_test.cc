// Each way in which a request can be wrong, alone: its code, and the word that the contract
// promises.
#include <algorithm>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "maxsimd/v1/rerank.pb.h"
#include "server/codec/decode.h"
#include "tests/server/codec/random_message.h"

namespace maxsimd {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();

template <typename Element>
std::string Bytes(const std::vector<Element>& elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()),
                     elements.size() * sizeof(Element));
}

// Two query tokens and three documents of 2, 0 and 1 tokens; dim 2, float32; ids and weights.
v1::RerankRequest ValidRequest() {
  v1::RerankRequest request;
  v1::TokenMatrix* query = request.mutable_query()->mutable_tokens();
  query->set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  query->set_dim(2);
  query->set_data(Bytes<float>({1, 2, 3, 4}));
  for (const float weight : {1.0f, 2.0f}) request.mutable_query()->add_token_weights(weight);
  v1::Documents* documents = request.mutable_documents();
  *documents->mutable_tokens() = *query;
  documents->mutable_tokens()->set_data(Bytes<float>({1, 2, 3, 4, 5, 6}));
  for (const uint32_t length : {2, 0, 1}) documents->add_lengths(length);
  for (const char* id : {"a", "b", "c"}) documents->add_ids(id);
  return request;
}

void SetOffsets(v1::RerankRequest* request, const std::vector<uint64_t>& offsets) {
  for (const uint64_t offset : offsets) request->mutable_documents()->add_offsets(offset);
}

absl::Status DecodeAsRerank(const v1::RerankRequest& request, const Limits& limits) {
  std::mt19937 random(1);
  const SlicedMessage message(request.SerializeAsString(), &random);
  return DecodeRerank(message.view(), limits, {}).status();
}

absl::Status DecodeAsStreamStart(const v1::RerankRequest& request, const Limits& limits) {
  std::mt19937 random(1);
  v1::RerankStreamRequest start;
  *start.mutable_start() = request;
  const SlicedMessage message(start.SerializeAsString(), &random);
  return DecodeStreamStart(message.view(), limits, {}).status();
}

// As a later message, against the request's query as it was before the change.
absl::Status DecodeAsStreamDocuments(const v1::RerankRequest& request, const Limits& limits) {
  std::mt19937 random(1);
  const SlicedMessage start(ValidRequest().SerializeAsString(), &random);
  const absl::StatusOr<StartMessage> valid = DecodeRerank(start.view(), Limits(), {});
  v1::RerankStreamRequest later;
  *later.mutable_documents() = request.documents();
  const SlicedMessage message(later.SerializeAsString(), &random);
  return DecodeStreamDocuments(message.view(), *valid->query, limits, {}).status();
}

bool HasWord(const absl::Status& status, const std::string& word) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const std::string message(status.message());
  for (size_t at = message.find_first_of(letters); at != std::string::npos;) {
    const size_t end = std::min(message.find_first_not_of(letters, at), message.size());
    if (message.substr(at, end - at) == word) return true;
    at = message.find_first_of(letters, end);
  }
  return false;
}

struct InvalidCase {
  const char* name;
  std::vector<std::string> words;
  std::function<void(v1::RerankRequest*)> change;
  bool in_documents = false;  // So that a later message of a stream has it too.
};

void PrintTo(const InvalidCase& invalid, std::ostream* out) {
  *out << invalid.name;
}

class InvalidRequestTest : public testing::TestWithParam<InvalidCase> {};

TEST_P(InvalidRequestTest, IsInvalidArgumentAndNamesTheField) {
  v1::RerankRequest request = ValidRequest();
  GetParam().change(&request);
  std::vector<absl::Status> statuses = {DecodeAsRerank(request, {}),
                                        DecodeAsStreamStart(request, {})};
  if (GetParam().in_documents) statuses.push_back(DecodeAsStreamDocuments(request, {}));
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    for (const std::string& word : GetParam().words) {
      EXPECT_TRUE(HasWord(status, word)) << word << " in: " << status;
    }
  }
}

const InvalidCase kInvalidQueries[] = {
    {"NoQuery",
     {"query", "tokens", "element_type", "dim", "data"},
     [](auto* r) { r->clear_query(); }},
    {"NoQueryAndNoDocuments", {"query", "tokens"}, [](auto* r) { r->Clear(); }},
    {"NoQueryTokens",
     {"tokens", "element_type"},
     [](auto* r) { r->mutable_query()->clear_tokens(); }},
    {"NoType",
     {"element_type"},
     [](auto* r) { r->mutable_query()->mutable_tokens()->clear_element_type(); }},
    {"UnknownType",
     {"element_type"},
     [](auto* r) {
       r->mutable_query()->mutable_tokens()->set_element_type(static_cast<v1::ElementType>(4));
     }},
    {"NegativeType",
     {"element_type"},
     [](auto* r) {
       r->mutable_query()->mutable_tokens()->set_element_type(static_cast<v1::ElementType>(-1));
     }},
    {"NoDim", {"dim"}, [](auto* r) { r->mutable_query()->mutable_tokens()->clear_dim(); }},
    {"NoData", {"data"}, [](auto* r) { r->mutable_query()->mutable_tokens()->clear_data(); }},
    {"PartOfARow",
     {"data"},
     [](auto* r) { r->mutable_query()->mutable_tokens()->mutable_data()->resize(12); }},
    {"PartOfAnElement",
     {"data"},
     [](auto* r) { r->mutable_query()->mutable_tokens()->mutable_data()->resize(15); }},
    {"NanInQuery",
     {"data"},
     [](auto* r) {
       r->mutable_query()->mutable_tokens()->set_data(Bytes<float>({1, kNan}));
     }},
    {"InfinityInTheLastElement",
     {"data"},
     [](auto* r) {
       r->mutable_query()->mutable_tokens()->set_data(Bytes<float>({1, -kInfinity}));
     }},
    {"NanInQueryWithoutDocuments",
     {"data"},
     [](auto* r) {
       r->mutable_query()->mutable_tokens()->set_data(Bytes<float>({1, 2, 3, kNan}));
       r->clear_documents();
     }},
    {"TooFewWeights",
     {"token_weights"},
     [](auto* r) { r->mutable_query()->mutable_token_weights()->RemoveLast(); }},
    {"TooManyWeights",
     {"token_weights"},
     [](auto* r) { r->mutable_query()->add_token_weights(1); }},
    {"ManyTooManyWeights",
     {"token_weights"},
     [](auto* r) {
       for (int i = 0; i < 10000; ++i) r->mutable_query()->add_token_weights(1);
     }},
    {"NanWeight",
     {"token_weights"},
     [](auto* r) { r->mutable_query()->set_token_weights(1, kNan); }},
    {"InfiniteWeight",
     {"token_weights"},
     [](auto* r) { r->mutable_query()->set_token_weights(0, kInfinity); }},
    {"UnknownAggregation",
     {"aggregation"},
     [](auto* r) { r->mutable_options()->set_aggregation(static_cast<v1::Aggregation>(3)); }},
    {"MeanOfWeightsThatCancel",
     {"token_weights", "MEAN"},
     [](auto* r) {
       r->mutable_options()->set_aggregation(v1::AGGREGATION_MEAN);
       r->mutable_query()->set_token_weights(0, -2);
     }},
    {"MeanOfNegativeWeights",
     {"token_weights", "MEAN"},
     [](auto* r) {
       r->mutable_options()->set_aggregation(v1::AGGREGATION_MEAN);
       r->mutable_query()->set_token_weights(0, -kMax);
     }},
};

const InvalidCase kInvalidDocuments[] = {
    {"OtherType",
     {"element_type"},
     [](auto* r) {
       r->mutable_documents()->mutable_tokens()->set_element_type(v1::ELEMENT_TYPE_BFLOAT16);
     }},
    {"UnknownDocumentType",
     {"element_type"},
     [](auto* r) {
       r->mutable_documents()->mutable_tokens()->set_element_type(static_cast<v1::ElementType>(99));
     }},
    {"NoDocumentType",
     {"element_type"},
     [](auto* r) { r->mutable_documents()->mutable_tokens()->clear_element_type(); }},
    {"NoDocumentTokens",
     {"tokens", "element_type", "dim", "data"},
     [](auto* r) { r->mutable_documents()->clear_tokens(); }},
    {"OnlyEmptyDocumentsUntyped",
     {"element_type"},
     [](auto* r) {
       r->mutable_documents()->Clear();
       r->mutable_documents()->add_lengths(0);
     }},
    {"OtherDim", {"dim"}, [](auto* r) { r->mutable_documents()->mutable_tokens()->set_dim(1); }},
    {"NoDocumentDim",
     {"dim"},
     [](auto* r) { r->mutable_documents()->mutable_tokens()->clear_dim(); }},
    {"PartOfADocumentRow",
     {"data"},
     [](auto* r) { r->mutable_documents()->mutable_tokens()->mutable_data()->resize(20); }},
    {"RowsLeftOver",
     {"lengths"},
     [](auto* r) { r->mutable_documents()->mutable_tokens()->mutable_data()->resize(32); }},
    {"RowsMissing",
     {"lengths"},
     [](auto* r) { r->mutable_documents()->mutable_tokens()->mutable_data()->resize(16); }},
    {"NoRows",
     {"lengths"},
     [](auto* r) { r->mutable_documents()->mutable_tokens()->clear_data(); }},
    {"NoLengths",
     {"lengths"},
     [](auto* r) {
       r->mutable_documents()->clear_lengths();
       r->mutable_documents()->clear_ids();
     }},
    {"LengthsWhoseSumWrapsIn32Bits",
     {"lengths"},
     [](auto* r) {
       r->mutable_documents()->clear_lengths();
       r->mutable_documents()->clear_ids();
       for (int i = 0; i < 65536; ++i) r->mutable_documents()->add_lengths(65536);
       r->mutable_documents()->add_lengths(3);
     }},
    {"OneOffset", {"offsets"}, [](auto* r) { SetOffsets(r, {0}); }},
    {"OneOffsetTooMany",
     {"offsets"},
     [](auto* r) {
       SetOffsets(r, {0, 0, 0, 0});
     }},
    {"RowsBeyondTheTensor",
     {"offsets"},
     [](auto* r) {
       SetOffsets(r, {2, 0, 0});
     }},
    {"OffsetBeyondTheTensorOfAnEmptyDocument",
     {"offsets"},
     [](auto* r) {
       SetOffsets(r, {0, 4, 0});
     }},
    {"OffsetThatOverflows",
     {"offsets"},
     [](auto* r) {
       SetOffsets(r, {~uint64_t{0}, 0, 0});
     }},
    {"OneIdMissing", {"ids"}, [](auto* r) { r->mutable_documents()->mutable_ids()->RemoveLast(); }},
    {"OneIdTooMany", {"ids"}, [](auto* r) { r->mutable_documents()->add_ids("d"); }},
    {"IdsWithoutDocuments",
     {"ids"},
     [](auto* r) {
       r->mutable_documents()->Clear();
       r->mutable_documents()->add_ids("a");
     }},
    {"OffsetsWithoutDocuments",
     {"offsets"},
     [](auto* r) {
       r->mutable_documents()->Clear();
       SetOffsets(r, {0});
     }},
    {"OtherTypeWithoutDocuments",
     {"element_type"},
     [](auto* r) {
       r->mutable_documents()->Clear();
       r->mutable_documents()->mutable_tokens()->set_element_type(v1::ELEMENT_TYPE_FLOAT16);
     }},
    {"OtherDimWithoutDocuments",
     {"dim"},
     [](auto* r) {
       r->mutable_documents()->Clear();
       r->mutable_documents()->mutable_tokens()->set_dim(5);
     }},
};

std::vector<InvalidCase> AllInvalid() {
  std::vector<InvalidCase> all(std::begin(kInvalidQueries), std::end(kInvalidQueries));
  for (InvalidCase invalid : kInvalidDocuments) {
    invalid.in_documents = true;
    all.push_back(std::move(invalid));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, InvalidRequestTest, testing::ValuesIn(AllInvalid()),
                         [](const auto& test) { return std::string(test.param.name); });

// A limit at exactly what the request needs, and how to lower it by one.
struct LimitCase {
  const char* name;
  uint64_t needed;
  std::function<void(Limits*, uint64_t)> set;
  bool in_documents = false;
};

void PrintTo(const LimitCase& limit, std::ostream* out) {
  *out << limit.name;
}

class LimitTest : public testing::TestWithParam<LimitCase> {};

TEST_P(LimitTest, IsResourceExhaustedFromOneBeyondAndNamesLimitAndValue) {
  const LimitCase& test = GetParam();
  Limits enough;
  test.set(&enough, test.needed);
  EXPECT_EQ(DecodeAsRerank(ValidRequest(), enough), absl::OkStatus());
  EXPECT_EQ(DecodeAsStreamStart(ValidRequest(), enough), absl::OkStatus());
  EXPECT_EQ(DecodeAsStreamDocuments(ValidRequest(), enough), absl::OkStatus());

  Limits exceeded;
  test.set(&exceeded, test.needed - 1);
  std::vector<absl::Status> statuses = {DecodeAsRerank(ValidRequest(), exceeded),
                                        DecodeAsStreamStart(ValidRequest(), exceeded)};
  if (test.in_documents) statuses.push_back(DecodeAsStreamDocuments(ValidRequest(), exceeded));
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(HasWord(status, test.name)) << status;
    EXPECT_TRUE(HasWord(status, std::to_string(test.needed - 1))) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LimitTest,
    testing::Values(
        LimitCase{"max_query_tokens", 2, [](Limits* l, uint64_t v) { l->max_query_tokens = v; }},
        LimitCase{"max_dim", 2, [](Limits* l, uint64_t v) { l->max_dim = v; }},
        LimitCase{"max_document_tokens", 2,
                  [](Limits* l, uint64_t v) { l->max_document_tokens = v; }, true},
        LimitCase{"max_documents_per_message", 3,
                  [](Limits* l, uint64_t v) { l->max_documents_per_message = v; }, true},
        LimitCase{"max_id_bytes", 1, [](Limits* l, uint64_t v) { l->max_id_bytes = v; }, true},
        LimitCase{"max_multiply_adds_per_message", 3 * 2 * 2,
                  [](Limits* l, uint64_t v) { l->max_multiply_adds_per_message = v; }, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(MessageLimitTest, IsCheckedToTheByteAndBeforeAnythingElse) {
  const v1::RerankRequest request = ValidRequest();
  Limits limits;
  limits.max_message_bytes = request.ByteSizeLong();
  EXPECT_EQ(DecodeAsRerank(request, limits), absl::OkStatus());
  --limits.max_message_bytes;
  const absl::Status status = DecodeAsRerank(request, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(HasWord(status, "max_message_bytes")) << status;
  EXPECT_TRUE(HasWord(status, std::to_string(limits.max_message_bytes))) << status;
}

TEST(MessageLimitTest, OfAStreamIsItsOwn) {
  Limits limits;
  limits.max_message_bytes = 1;
  EXPECT_EQ(DecodeAsStreamStart(ValidRequest(), limits), absl::OkStatus());
  EXPECT_EQ(DecodeAsStreamDocuments(ValidRequest(), limits), absl::OkStatus());
  limits.max_stream_message_bytes = 10;
  for (const absl::Status& status : {DecodeAsStreamStart(ValidRequest(), limits),
                                     DecodeAsStreamDocuments(ValidRequest(), limits)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(HasWord(status, "max_stream_message_bytes")) << status;
  }
}

TEST(WorkLimitTest, RefusesAlsoWhereTheProductOverflows) {
  v1::RerankRequest request = ValidRequest();
  request.clear_documents();
  v1::Documents* documents = request.mutable_documents();
  *documents->mutable_tokens() = request.query().tokens();
  Limits limits;
  limits.max_document_tokens = std::numeric_limits<uint32_t>::max();
  limits.max_multiply_adds_per_message = std::numeric_limits<uint64_t>::max();
  // 2^19 documents of nearly 2^32 tokens; a query of 2^13 tokens and dim 2 is 2^14 for each.
  limits.max_documents_per_message = 1 << 20;
  limits.max_query_tokens = 1 << 15;
  request.mutable_query()->clear_token_weights();
  request.mutable_query()->mutable_tokens()->set_data(std::string(8 << 13, '\0'));
  for (int i = 0; i < 1 << 19; ++i) documents->add_lengths(~uint32_t{0});
  const absl::Status status = DecodeAsRerank(request, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(HasWord(status, "max_multiply_adds_per_message")) << status;
}

}  // namespace
}  // namespace maxsimd
