#include "client/message_encoder.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace maxsimd {
namespace {

enum WireType : uint32_t { kVarint = 0, kLengthDelimited = 2 };

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendTag(int field, WireType type, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | type, out);
}

// proto3 leaves out scalars that are 0.
void AppendScalar(int field, uint64_t value, std::string* out) {
  if (value == 0) return;
  AppendTag(field, kVarint, out);
  AppendVarint(value, out);
}

void AppendBytes(int field, absl::string_view bytes, std::string* out) {
  AppendTag(field, kLengthDelimited, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

template <typename T>
void AppendPacked(int field, absl::Span<const T> values, std::string* out) {
  if (values.empty()) return;
  std::string packed;
  packed.reserve(2 * values.size());
  for (T value : values) AppendVarint(value, &packed);
  AppendBytes(field, packed, out);
}

// Puts the tag and length of field `field` before a message's parts.
void WrapInField(int field, MessageParts* parts) {
  std::string header;
  AppendTag(field, kLengthDelimited, &header);
  AppendVarint(TotalBytes(*parts), &header);
  if (parts->empty()) parts->push_back({});
  parts->front().owned.insert(0, header);
}

void AppendParts(MessageParts more, MessageParts* parts) {
  parts->insert(parts->end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

absl::string_view Rows(const TokenMatrixView& matrix, RowRange rows) {
  const uint64_t row_bytes = RowBytes(matrix);
  return matrix.data.substr(rows.begin * row_bytes, (rows.end - rows.begin) * row_bytes);
}

// A TokenMatrix as field 1 (of Query and of Documents).
MessageParts EncodeTokens(const TokenMatrixView& matrix, absl::Span<const RowRange> ranges) {
  MessageParts parts(1);
  std::string& header = parts.front().owned;
  AppendScalar(v1::TokenMatrix::kElementTypeFieldNumber, matrix.element_type, &header);
  AppendScalar(v1::TokenMatrix::kDimFieldNumber, matrix.dim, &header);
  uint64_t data_bytes = 0;
  for (const RowRange& range : ranges) data_bytes += Rows(matrix, range).size();
  if (data_bytes > 0) {
    AppendTag(v1::TokenMatrix::kDataFieldNumber, kLengthDelimited, &header);
    AppendVarint(data_bytes, &header);
    for (const RowRange& range : ranges) parts.push_back({"", Rows(matrix, range)});
  }
  WrapInField(v1::Query::kTokensFieldNumber, &parts);
  return parts;
}
static_assert(static_cast<int>(v1::Query::kTokensFieldNumber) ==
              static_cast<int>(v1::Documents::kTokensFieldNumber));

MessageParts EncodeQuery(const RerankInput& input) {
  const uint64_t row_bytes = RowBytes(input.query);
  const RowRange all{0, row_bytes == 0 ? 0 : input.query.data.size() / row_bytes};
  MessageParts parts = EncodeTokens(input.query, {all});
  if (input.weights.empty()) return parts;
  const absl::string_view weights(reinterpret_cast<const char*>(input.weights.data()),
                                  input.weights.size() * sizeof(float));
  parts.push_back({});
  AppendBytes(v1::Query::kTokenWeightsFieldNumber, weights, &parts.back().owned);
  return parts;
}

MessageParts EncodeDocuments(const RerankInput& input, const Chunk& chunk) {
  MessageParts parts = EncodeTokens(input.documents, chunk.ranges);
  parts.push_back({});
  std::string* tail = &parts.back().owned;
  AppendPacked(v1::Documents::kLengthsFieldNumber,
               input.lengths.subspan(chunk.first_document, chunk.document_count), tail);
  if (!input.offsets.empty()) {
    const std::vector<uint64_t> offsets = RebasedOffsets(LayoutOf(input), chunk);
    AppendPacked(v1::Documents::kOffsetsFieldNumber, absl::MakeConstSpan(offsets), tail);
  }
  if (!input.ids.empty()) {
    for (const std::string& id : input.ids.subspan(chunk.first_document, chunk.document_count)) {
      AppendBytes(v1::Documents::kIdsFieldNumber, id, tail);
    }
  }
  return parts;
}

}  // namespace

MessageParts EncodeRequest(const RerankInput& input, const Chunk& chunk) {
  MessageParts parts = EncodeQuery(input);
  WrapInField(v1::RerankRequest::kQueryFieldNumber, &parts);
  if (chunk.document_count > 0) {
    MessageParts documents = EncodeDocuments(input, chunk);
    WrapInField(v1::RerankRequest::kDocumentsFieldNumber, &documents);
    AppendParts(std::move(documents), &parts);
  }
  parts.push_back({});
  AppendBytes(v1::RerankRequest::kOptionsFieldNumber, input.options.SerializeAsString(),
              &parts.back().owned);
  return parts;
}

MessageParts EncodeStreamStart(const RerankInput& input, const Chunk& chunk) {
  MessageParts parts = EncodeRequest(input, chunk);
  WrapInField(v1::RerankStreamRequest::kStartFieldNumber, &parts);
  return parts;
}

MessageParts EncodeStreamDocuments(const RerankInput& input, const Chunk& chunk) {
  MessageParts parts = EncodeDocuments(input, chunk);
  WrapInField(v1::RerankStreamRequest::kDocumentsFieldNumber, &parts);
  return parts;
}

uint64_t StartBytes(const RerankInput& input) {
  return TotalBytes(EncodeRequest(input, Chunk{}));
}

uint64_t TotalBytes(const MessageParts& parts) {
  uint64_t bytes = 0;
  for (const MessagePart& part : parts) bytes += part.owned.size() + part.borrowed.size();
  return bytes;
}

DocumentLayout LayoutOf(const RerankInput& input) {
  const uint64_t row_bytes = RowBytes(input.query);
  const uint64_t query_tokens = row_bytes == 0 ? 0 : input.query.data.size() / row_bytes;
  return {.row_bytes = RowBytes(input.documents),
          .multiply_adds_per_row = query_tokens * input.query.dim,
          .lengths = input.lengths,
          .offsets = input.offsets,
          .ids = input.ids};
}

}  // namespace maxsimd
