#include "server/codec/raw_request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "server/codec/field_numbers.h"
#include "server/codec/utf8.h"
#include "server/codec/wire_reader.h"

namespace maxsimd {
namespace {

// Reads each message into what is there already, so that a repeated singular submessage merges.  A
// known field of another wire type is an unknown field.
class Parser {
 public:
  Parser(const MessageView& message, const Limits& limits) : reader_(message), limits_(limits) {}

  bool Read(RawRequest* request) {
    return reader_.ReadFields([&](uint32_t tag) { return RequestField(tag, request); });
  }

  bool Read(RawStreamRequest* request) {
    return reader_.ReadFields([&](uint32_t tag) { return StreamRequestField(tag, request); });
  }

  absl::Status error() const {
    return absl::InvalidArgumentError(bad_id_ ? "documents.ids: an id is not valid UTF-8"
                                              : "malformed message");
  }

 private:
  bool StreamRequestField(uint32_t tag, RawStreamRequest* request);
  bool RequestField(uint32_t tag, RawRequest* request);
  bool QueryField(uint32_t tag, RawQuery* query);
  bool DocumentsField(uint32_t tag, RawDocuments* documents);
  bool OptionsField(uint32_t tag, RawOptions* options);
  bool ReadMatrix(RawMatrix* matrix);
  bool ReadDocuments(RawDocuments* documents);
  bool ReadId(RawDocuments* documents);

  bool AddWeight(RawQuery* query);
  bool AddLength(RawDocuments* documents);
  bool AddOffset(RawDocuments* documents);

  WireReader reader_;
  const Limits& limits_;
  std::string id_;  // Reused.
  bool bad_id_ = false;
};

bool Parser::StreamRequestField(uint32_t tag, RawStreamRequest* request) {
  using Kind = RawStreamRequest::Kind;
  switch (tag) {
    case LengthTag(field::stream_request::kStart):
      if (request->kind != Kind::kStart)
        *request = {.kind = Kind::kStart, .start = {}, .documents = {}};
      return reader_.ReadMessage(
          [&](uint32_t inner) { return RequestField(inner, &request->start); });
    case LengthTag(field::stream_request::kDocuments):
      if (request->kind != Kind::kDocuments)
        *request = {.kind = Kind::kDocuments, .start = {}, .documents = {}};
      return ReadDocuments(&request->documents);
    default:
      return reader_.Skip(tag);
  }
}

bool Parser::RequestField(uint32_t tag, RawRequest* request) {
  switch (tag) {
    case LengthTag(field::request::kQuery):
      return reader_.ReadMessage(
          [&](uint32_t inner) { return QueryField(inner, &request->query); });
    case LengthTag(field::request::kDocuments):
      return ReadDocuments(&request->documents);
    case LengthTag(field::request::kOptions):
      return reader_.ReadMessage(
          [&](uint32_t inner) { return OptionsField(inner, &request->options); });
    default:
      return reader_.Skip(tag);
  }
}

bool Parser::QueryField(uint32_t tag, RawQuery* query) {
  switch (tag) {
    case LengthTag(field::query::kTokens):
      return ReadMatrix(&query->tokens);
    case LengthTag(field::query::kTokenWeights):
      return reader_.ReadPacked([&] { return AddWeight(query); });
    case Fixed32Tag(field::query::kTokenWeights):
      return AddWeight(query);
    default:
      return reader_.Skip(tag);
  }
}

bool Parser::ReadDocuments(RawDocuments* documents) {
  return reader_.ReadMessage([&](uint32_t tag) { return DocumentsField(tag, documents); });
}

bool Parser::DocumentsField(uint32_t tag, RawDocuments* documents) {
  switch (tag) {
    case LengthTag(field::documents::kTokens):
      return ReadMatrix(&documents->tokens);
    case LengthTag(field::documents::kLengths):
      return reader_.ReadPacked([&] { return AddLength(documents); });
    case VarintTag(field::documents::kLengths):
      return AddLength(documents);
    case LengthTag(field::documents::kOffsets):
      return reader_.ReadPacked([&] { return AddOffset(documents); });
    case VarintTag(field::documents::kOffsets):
      return AddOffset(documents);
    case LengthTag(field::documents::kIds):
      return ReadId(documents);
    default:
      return reader_.Skip(tag);
  }
}

bool Parser::OptionsField(uint32_t tag, RawOptions* options) {
  switch (tag) {
    case VarintTag(field::options::kTopK):
      return reader_.ReadUint32(&options->top_k);
    case VarintTag(field::options::kNormalize):
      return reader_.ReadBool(&options->normalize);
    case VarintTag(field::options::kAggregation):
      return reader_.ReadEnum(&options->aggregation);
    case VarintTag(field::options::kReturnMatches):
      return reader_.ReadBool(&options->return_matches);
    default:
      return reader_.Skip(tag);
  }
}

bool Parser::ReadMatrix(RawMatrix* matrix) {
  return reader_.ReadMessage([&](uint32_t tag) {
    switch (tag) {
      case VarintTag(field::token_matrix::kElementType):
        return reader_.ReadEnum(&matrix->element_type);
      case VarintTag(field::token_matrix::kDim):
        return reader_.ReadUint32(&matrix->dim);
      case LengthTag(field::token_matrix::kData):
        return reader_.LocateBytes(&matrix->data_offset, &matrix->data_size);
      default:
        return reader_.Skip(tag);
    }
  });
}

bool Parser::ReadId(RawDocuments* documents) {
  if (!reader_.ReadString(&id_)) return false;
  if (!IsUtf8(id_)) {
    bad_id_ = true;
    return false;
  }
  documents->longest_id = std::max(documents->longest_id, id_.size());
  if (documents->id_count < limits_.max_documents_per_message &&
      id_.size() <= limits_.max_id_bytes) {
    documents->ids.Add(id_);
  }
  ++documents->id_count;
  return true;
}

bool Parser::AddWeight(RawQuery* query) {
  float weight;
  if (!reader_.ReadFloat(&weight)) return false;
  query->token_weights.Add(weight, limits_.max_query_tokens);
  return true;
}

bool Parser::AddLength(RawDocuments* documents) {
  uint32_t length;
  if (!reader_.ReadUint32(&length)) return false;
  documents->lengths.Add(length, limits_.max_documents_per_message);
  return true;
}

bool Parser::AddOffset(RawDocuments* documents) {
  uint64_t offset;
  if (!reader_.ReadUint64(&offset)) return false;
  documents->offsets.Add(offset, limits_.max_documents_per_message);
  return true;
}

template <typename Raw>
absl::StatusOr<Raw> Parse(const MessageView& message, const Limits& limits) {
  Parser parser(message, limits);
  Raw raw;
  if (!parser.Read(&raw)) return parser.error();
  return raw;
}

}  // namespace

absl::StatusOr<RawRequest> ParseRequest(const MessageView& message, const Limits& limits) {
  return Parse<RawRequest>(message, limits);
}

absl::StatusOr<RawStreamRequest> ParseStreamRequest(const MessageView& message,
                                                    const Limits& limits) {
  return Parse<RawStreamRequest>(message, limits);
}

}  // namespace maxsimd
