#include "tests/server/codec/decode_check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/codec/decode.h"
#include "tests/server/codec/naive_validation.h"
#include "tests/server/codec/random_message.h"
#include "tests/server/codec/unit_check.h"

namespace maxsimd {
namespace {

// So small that random requests reach each of them.
constexpr Limits kLimits = {.max_message_bytes = 4000,
                            .max_stream_message_bytes = 3000,
                            .max_query_tokens = 3,
                            .max_document_tokens = 40,
                            .max_dim = 12,
                            .max_documents_per_message = 9,
                            .max_id_bytes = 10,
                            .max_multiply_adds_per_message = 200};
constexpr UnitLimits kUnitLimits = {
    .gather_bytes = 24, .max_multiply_adds = 60, .max_result_bytes = 100};

// What was decoded, of whichever entry.
struct Decoded {
  std::shared_ptr<const Query> query;  // Null with kStreamDocuments.
  uint32_t top_k = 0;
  DocumentChunk documents;
};

struct Parsed {
  bool well_formed = false;
  std::string wrong_kind;  // Of the stream's message, or empty.
  v1::RerankRequest request;
};

Query StreamQuery() {
  const v1::TokenMatrix tokens = CheckedStreamQuery();
  Query query;
  query.element_type = ElementType::kFloat16;
  query.dim = tokens.dim();
  query.tokens = static_cast<uint32_t>(tokens.data().size() / query.row_bytes());
  query.data.resize(tokens.data().size());
  return query;
}

absl::StatusOr<Decoded> Decode(DecoderEntry entry, const MessageView& message) {
  if (entry == DecoderEntry::kStreamDocuments) {
    absl::StatusOr<DocumentChunk> chunk =
        DecodeStreamDocuments(message, StreamQuery(), kLimits, kUnitLimits);
    if (!chunk.ok()) return chunk.status();
    return Decoded{.query = nullptr, .top_k = 0, .documents = *std::move(chunk)};
  }
  absl::StatusOr<StartMessage> start = entry == DecoderEntry::kRerank
                                           ? DecodeRerank(message, kLimits, kUnitLimits)
                                           : DecodeStreamStart(message, kLimits, kUnitLimits);
  if (!start.ok()) return start.status();
  return Decoded{start->query, start->top_k, std::move(start->documents)};
}

Parsed Parse(DecoderEntry entry, const std::string& message) {
  const google::protobuf::LogSilencer silencer;  // It logs ids that are not UTF-8.
  Parsed parsed;
  if (entry == DecoderEntry::kRerank) {
    parsed.well_formed = parsed.request.ParseFromString(message);
    return parsed;
  }
  v1::RerankStreamRequest stream;
  parsed.well_formed = stream.ParseFromString(message);
  const bool start = entry == DecoderEntry::kStreamStart;
  if (start ? !stream.has_start() : !stream.has_documents()) parsed.wrong_kind = "message";
  if (start) {
    parsed.request = stream.start();
  } else {
    *parsed.request.mutable_documents() = stream.documents();
  }
  return parsed;
}

// "query.tokens.dim: is 0" is about `dim`.
std::string Subject(const absl::Status& status) {
  const std::string message(status.message());
  const std::string path = message.substr(0, message.find(':'));
  return path.substr(path.rfind('.') + 1);
}

std::string ErrorDifference(const absl::Status& status, const Verdict& verdict) {
  const std::string subject = Subject(status);
  const bool expected =
      status.code() == absl::StatusCode::kInvalidArgument     ? verdict.invalid.count(subject) > 0
      : status.code() == absl::StatusCode::kResourceExhausted ? verdict.exceeded.count(subject) > 0
                                                              : verdict.ok() && status.ok();
  return expected ? "" : absl::StrCat("not what is wrong: ", status.ToString());
}

template <typename Bytes>
bool SameBytes(const Bytes& bytes, const std::string& expected) {
  return bytes.size() == expected.size() &&
         (bytes.empty() || std::memcmp(bytes.data(), expected.data(), expected.size()) == 0);
}

std::string QueryDifference(const Query& query, const v1::RerankRequest& request) {
  const v1::TokenMatrix& tokens = request.query().tokens();
  const v1::RerankOptions& options = request.options();
  if (static_cast<int>(query.element_type) + 1 != tokens.element_type()) return "element_type";
  if (query.dim != tokens.dim()) return "dim";
  if (!SameBytes(query.data, tokens.data())) return "data";
  if (query.tokens * query.row_bytes() != query.data.size()) return "tokens";
  const auto& weights = request.query().token_weights();
  if (query.weights != std::vector<float>(weights.begin(), weights.end())) return "weights";
  const bool mean = options.aggregation() == v1::AGGREGATION_MEAN;
  if (query.aggregation != (mean ? Aggregation::kMean : Aggregation::kSum)) return "aggregation";
  if (query.normalize != options.normalize()) return "normalize";
  return query.return_matches == options.return_matches() ? "" : "return_matches";
}

std::string ChunkDifference(const DocumentChunk& chunk, const Query& query,
                            const v1::Documents& documents, const MessageView& message) {
  const size_t count = documents.lengths_size();
  if (chunk.documents.size() != count) return "number of documents";
  if (chunk.ids.size() != static_cast<size_t>(documents.ids_size())) return "number of ids";
  if (chunk.row_bytes != query.row_bytes()) return "row_bytes";
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const int at = static_cast<int>(i);
    const uint64_t first_row = documents.offsets().empty() ? sum : documents.offsets(at);
    if (chunk.documents[i].first_row != first_row) return "first_row";
    if (chunk.documents[i].length != documents.lengths(at)) return "length";
    if (!chunk.ids.empty() && chunk.ids[i] != documents.ids(at)) return "id";
    sum += documents.lengths(at);
  }
  if (chunk.document_tokens != sum) return "document_tokens";
  if (chunk.multiply_adds != sum * query.tokens * query.dim) return "multiply_adds";
  std::vector<std::byte> rows(chunk.row_count * chunk.row_bytes);
  message.CopyRows(chunk.data_offset, chunk.row_bytes, chunk.row_count, chunk.row_bytes,
                   rows.data());
  if (!SameBytes(rows, documents.tokens().data())) return "data";
  return UnitsProblem(chunk, query, kUnitLimits);
}

std::string DecodedDifference(const Decoded& decoded, const v1::RerankRequest& request,
                              const MessageView& message) {
  if (decoded.query == nullptr) {
    return ChunkDifference(decoded.documents, StreamQuery(), request.documents(), message);
  }
  if (decoded.top_k != request.options().top_k()) return "top_k";
  const std::string difference = QueryDifference(*decoded.query, request);
  if (!difference.empty()) return difference;
  return ChunkDifference(decoded.documents, *decoded.query, request.documents(), message);
}

Verdict Judge(DecoderEntry entry, const Parsed& parsed) {
  if (!parsed.wrong_kind.empty()) return {.invalid = {parsed.wrong_kind}, .exceeded = {}};
  const v1::RerankRequest& request = parsed.request;
  if (entry == DecoderEntry::kStreamDocuments) {
    return JudgeDocuments(request.documents(), CheckedStreamQuery(), kLimits);
  }
  Verdict verdict = JudgeQuery(request.query(), request.options(), kLimits);
  if (!verdict.ok()) return verdict;
  return JudgeDocuments(request.documents(), request.query().tokens(), kLimits);
}

}  // namespace

v1::TokenMatrix CheckedStreamQuery() {
  v1::TokenMatrix tokens;
  tokens.set_element_type(v1::ELEMENT_TYPE_FLOAT16);
  tokens.set_dim(3);
  tokens.set_data(std::string(2 * 3 * 2, '\0'));  // Two tokens.
  return tokens;
}

std::string DecoderDifference(DecoderEntry entry, const std::string& message, uint32_t slice_seed) {
  Random random(slice_seed);
  const SlicedMessage sliced(message, &random);
  const absl::StatusOr<Decoded> decoded = Decode(entry, sliced.view());

  const bool rerank = entry == DecoderEntry::kRerank;
  if (message.size() > (rerank ? kLimits.max_message_bytes : kLimits.max_stream_message_bytes)) {
    return ErrorDifference(
        decoded.status(),
        {.invalid = {}, .exceeded = {rerank ? "max_message_bytes" : "max_stream_message_bytes"}});
  }
  const Parsed parsed = Parse(entry, message);
  const bool refused = decoded.status().message() == "malformed message" ||
                       absl::StrContains(decoded.status().message(), "UTF-8");
  if (refused != !parsed.well_formed) {
    return absl::StrCat("parser says ", parsed.well_formed, ", decoder ",
                        decoded.status().ToString());
  }
  if (refused) return absl::IsInvalidArgument(decoded.status()) ? "" : "malformed: wrong code";

  const Verdict verdict = Judge(entry, parsed);
  if (!decoded.ok()) return ErrorDifference(decoded.status(), verdict);
  if (!verdict.ok()) return "accepts what is wrong";
  return DecodedDifference(*decoded, parsed.request, sliced.view());
}

int CheckDecoder(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto entry = static_cast<DecoderEntry>(data[0] % kDecoderEntries);
  const std::string message(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string difference = DecoderDifference(entry, message, data[0]);
  if (!difference.empty()) {
    std::fprintf(stderr, "CheckDecoder: %s\n", difference.c_str());
    std::abort();
  }
  return 0;
}

}  // namespace maxsimd
