// The contract's field and enum numbers, for code that reads and writes the wire format by hand.
//
// Source: proto/maxsimd/v1/rerank.proto; field_numbers_test.cc compares them with its descriptors.
#ifndef MAXSIMD_SERVER_CODEC_FIELD_NUMBERS_H_
#define MAXSIMD_SERVER_CODEC_FIELD_NUMBERS_H_

namespace maxsimd::field {

namespace token_matrix {
inline constexpr int kElementType = 1;
inline constexpr int kDim = 2;
inline constexpr int kData = 3;
}  // namespace token_matrix

namespace query {
inline constexpr int kTokens = 1;
inline constexpr int kTokenWeights = 2;
}  // namespace query

namespace documents {
inline constexpr int kTokens = 1;
inline constexpr int kLengths = 2;
inline constexpr int kOffsets = 3;
inline constexpr int kIds = 4;
}  // namespace documents

namespace options {
inline constexpr int kTopK = 1;
inline constexpr int kNormalize = 2;
inline constexpr int kAggregation = 3;
inline constexpr int kReturnMatches = 4;
}  // namespace options

namespace request {
inline constexpr int kQuery = 1;
inline constexpr int kDocuments = 2;
inline constexpr int kOptions = 3;
}  // namespace request

namespace stream_request {
inline constexpr int kStart = 1;
inline constexpr int kDocuments = 2;
}  // namespace stream_request

namespace token_match {
inline constexpr int kDocumentToken = 1;
inline constexpr int kSimilarity = 2;
}  // namespace token_match

namespace scored_document {
inline constexpr int kIndex = 1;
inline constexpr int kScore = 2;
inline constexpr int kStatus = 3;
inline constexpr int kId = 4;
inline constexpr int kMatches = 5;
}  // namespace scored_document

namespace response {
inline constexpr int kResults = 1;
inline constexpr int kSummary = 2;
}  // namespace response

namespace summary {
inline constexpr int kDocuments = 1;
inline constexpr int kDocumentTokens = 2;
inline constexpr int kTimings = 3;
}  // namespace summary

namespace timings {
inline constexpr int kTotal = 1;
inline constexpr int kReceive = 2;
inline constexpr int kQueue = 3;
inline constexpr int kPack = 4;
inline constexpr int kUpload = 5;
inline constexpr int kCompute = 6;
inline constexpr int kBatches = 7;
}  // namespace timings

// google.protobuf.Duration.
namespace duration {
inline constexpr int kSeconds = 1;
inline constexpr int kNanos = 2;
}  // namespace duration

namespace element_type {
inline constexpr int kUnspecified = 0;
inline constexpr int kFloat32 = 1;
inline constexpr int kFloat16 = 2;
inline constexpr int kBfloat16 = 3;
}  // namespace element_type

namespace aggregation {
inline constexpr int kUnspecified = 0;
inline constexpr int kSum = 1;
inline constexpr int kMean = 2;
}  // namespace aggregation

namespace document_status {
inline constexpr int kScored = 1;
inline constexpr int kEmpty = 2;
inline constexpr int kNonFinite = 3;
}  // namespace document_status

}  // namespace maxsimd::field

#endif  // MAXSIMD_SERVER_CODEC_FIELD_NUMBERS_H_
