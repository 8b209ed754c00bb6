#include "server/codec/field_numbers.h"

#include <map>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include <gtest/gtest.h>

#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {
namespace {

using namespace field;  // NOLINT: all of it, side by side with the names in the contract.

using Numbers = std::map<std::string, int>;

template <typename Message>
Numbers FieldsOf() {
  Numbers numbers;
  const google::protobuf::Descriptor* descriptor = Message::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    numbers[descriptor->field(i)->name()] = descriptor->field(i)->number();
  }
  return numbers;
}

Numbers ValuesOf(const google::protobuf::EnumDescriptor* descriptor) {
  Numbers numbers;
  for (int i = 0; i < descriptor->value_count(); ++i) {
    numbers[descriptor->value(i)->name()] = descriptor->value(i)->number();
  }
  return numbers;
}

TEST(FieldNumbersTest, RequestsAreTheContracts) {
  EXPECT_EQ(FieldsOf<v1::TokenMatrix>(), (Numbers{{"element_type", token_matrix::kElementType},
                                                  {"dim", token_matrix::kDim},
                                                  {"data", token_matrix::kData}}));
  EXPECT_EQ(FieldsOf<v1::Query>(),
            (Numbers{{"tokens", query::kTokens}, {"token_weights", query::kTokenWeights}}));
  EXPECT_EQ(FieldsOf<v1::Documents>(), (Numbers{{"tokens", documents::kTokens},
                                                {"lengths", documents::kLengths},
                                                {"offsets", documents::kOffsets},
                                                {"ids", documents::kIds}}));
  EXPECT_EQ(FieldsOf<v1::RerankOptions>(), (Numbers{{"top_k", options::kTopK},
                                                    {"normalize", options::kNormalize},
                                                    {"aggregation", options::kAggregation},
                                                    {"return_matches", options::kReturnMatches}}));
  EXPECT_EQ(FieldsOf<v1::RerankRequest>(), (Numbers{{"query", request::kQuery},
                                                    {"documents", request::kDocuments},
                                                    {"options", request::kOptions}}));
  EXPECT_EQ(
      FieldsOf<v1::RerankStreamRequest>(),
      (Numbers{{"start", stream_request::kStart}, {"documents", stream_request::kDocuments}}));
}

TEST(FieldNumbersTest, ResponsesAreTheContracts) {
  EXPECT_EQ(FieldsOf<v1::TokenMatch>(), (Numbers{{"document_token", token_match::kDocumentToken},
                                                 {"similarity", token_match::kSimilarity}}));
  EXPECT_EQ(FieldsOf<v1::ScoredDocument>(), (Numbers{{"index", scored_document::kIndex},
                                                     {"score", scored_document::kScore},
                                                     {"status", scored_document::kStatus},
                                                     {"id", scored_document::kId},
                                                     {"matches", scored_document::kMatches}}));
  EXPECT_EQ(FieldsOf<v1::RerankResponse>(),
            (Numbers{{"results", response::kResults}, {"summary", response::kSummary}}));
  EXPECT_EQ(FieldsOf<v1::RerankSummary>(), (Numbers{{"documents", summary::kDocuments},
                                                    {"document_tokens", summary::kDocumentTokens},
                                                    {"timings", summary::kTimings}}));
  EXPECT_EQ(FieldsOf<v1::Timings>(), (Numbers{{"total", timings::kTotal},
                                              {"receive", timings::kReceive},
                                              {"queue", timings::kQueue},
                                              {"pack", timings::kPack},
                                              {"upload", timings::kUpload},
                                              {"compute", timings::kCompute},
                                              {"batches", timings::kBatches}}));
  EXPECT_EQ(FieldsOf<google::protobuf::Duration>(),
            (Numbers{{"seconds", duration::kSeconds}, {"nanos", duration::kNanos}}));
}

TEST(FieldNumbersTest, EnumsAreTheContracts) {
  EXPECT_EQ(ValuesOf(v1::ElementType_descriptor()),
            (Numbers{{"ELEMENT_TYPE_UNSPECIFIED", element_type::kUnspecified},
                     {"ELEMENT_TYPE_FLOAT32", element_type::kFloat32},
                     {"ELEMENT_TYPE_FLOAT16", element_type::kFloat16},
                     {"ELEMENT_TYPE_BFLOAT16", element_type::kBfloat16}}));
  EXPECT_EQ(ValuesOf(v1::Aggregation_descriptor()),
            (Numbers{{"AGGREGATION_UNSPECIFIED", aggregation::kUnspecified},
                     {"AGGREGATION_SUM", aggregation::kSum},
                     {"AGGREGATION_MEAN", aggregation::kMean}}));
  EXPECT_EQ(ValuesOf(v1::DocumentStatus_descriptor()),
            (Numbers{{"DOCUMENT_STATUS_UNSPECIFIED", 0},
                     {"DOCUMENT_STATUS_SCORED", document_status::kScored},
                     {"DOCUMENT_STATUS_EMPTY", document_status::kEmpty},
                     {"DOCUMENT_STATUS_NON_FINITE", document_status::kNonFinite}}));
}

}  // namespace
}  // namespace maxsimd
