#include "server/codec/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

#include "kernels/element_conversion.h"
#include "kernels/status_macros.h"
#include "server/codec/field_numbers.h"
#include "server/codec/units.h"

namespace maxsimd {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// `path` is the matrix's, "query.tokens".
absl::StatusOr<ElementType> ToElementType(absl::string_view path, int32_t number) {
  switch (number) {
    case field::element_type::kFloat32:
      return ElementType::kFloat32;
    case field::element_type::kFloat16:
      return ElementType::kFloat16;
    case field::element_type::kBfloat16:
      return ElementType::kBfloat16;
    case field::element_type::kUnspecified:
      return Invalid(path, ".element_type: not specified");
    default:
      return Invalid(path, ".element_type: ", number, " is not known to this server");
  }
}

absl::StatusOr<Aggregation> ToAggregation(int32_t number) {
  switch (number) {
    case field::aggregation::kUnspecified:
    case field::aggregation::kSum:
      return Aggregation::kSum;
    case field::aggregation::kMean:
      return Aggregation::kMean;
    default:
      return Invalid("options.aggregation: ", number, " is not known to this server");
  }
}

// Neither type nor dim nor data: no matrix, or an empty one, which proto3 takes for the same.
absl::Status CheckPresent(absl::string_view path, const RawMatrix& raw) {
  if (raw.element_type != 0 || raw.dim != 0 || raw.data_size != 0) return absl::OkStatus();
  return Invalid(path, ": missing; its element_type, dim and data are required");
}

absl::StatusOr<uint64_t> CountRows(absl::string_view path, const RawMatrix& raw, ElementType type) {
  const uint64_t row_bytes = uint64_t{raw.dim} * ElementBytes(type);
  if (raw.data_size % row_bytes == 0) return raw.data_size / row_bytes;
  return Invalid(path, ".data: ", raw.data_size, " bytes are not whole rows of ", row_bytes,
                 " bytes (", raw.dim, " x ", ElementTypeName(type), ")");
}

absl::Status ReadQueryTokens(const RawMatrix& raw, const MessageView& message, const Limits& limits,
                             Query* query) {
  RETURN_IF_ERROR(CheckPresent("query.tokens", raw));
  ASSIGN_OR_RETURN(query->element_type, ToElementType("query.tokens", raw.element_type));
  if (raw.dim == 0) return Invalid("query.tokens.dim: is 0, must be at least 1");
  RETURN_IF_ERROR(CheckLimit("max_dim", raw.dim, limits.max_dim));
  query->dim = raw.dim;
  ASSIGN_OR_RETURN(const uint64_t tokens, CountRows("query.tokens", raw, query->element_type));
  if (tokens == 0) return Invalid("query.tokens.data: is empty, at least one token is required");
  RETURN_IF_ERROR(CheckLimit("max_query_tokens", tokens, limits.max_query_tokens));
  query->tokens = static_cast<uint32_t>(tokens);
  query->data.resize(raw.data_size);
  message.Copy(raw.data_offset, raw.data_size, query->data.data());
  if (!AllFinite(query->element_type, query->data.data(),
                 query->data.size() / ElementBytes(query->element_type))) {
    return Invalid("query.tokens.data: holds a NaN or an infinity");
  }
  return absl::OkStatus();
}

absl::Status ReadWeights(const RawRepeated<float>& raw, Query* query) {
  if (raw.count != 0 && raw.count != query->tokens) {
    return Invalid("query.token_weights: ", raw.count, " weights for ", query->tokens,
                   " tokens; must be none or one for each");
  }
  query->weights = raw.values;
  if (!std::all_of(query->weights.begin(), query->weights.end(),
                   [](float weight) { return std::isfinite(weight); })) {
    return Invalid("query.token_weights: holds a NaN or an infinity");
  }
  if (query->aggregation == Aggregation::kMean) {
    const double sum = WeightSum(query->weights, query->tokens);
    if (!std::isfinite(sum) || !(sum > 0)) {
      return Invalid("query.token_weights: sum is ", sum,
                     ", must be finite and > 0 with aggregation MEAN");
    }
  }
  return absl::OkStatus();
}

uint64_t HashQuery(const Query& query) {
  const auto bytes = [](const auto& values) {
    return absl::string_view(reinterpret_cast<const char*>(values.data()),
                             values.size() * sizeof(values[0]));
  };
  return absl::HashOf(query.element_type, query.tokens, query.dim, bytes(query.data),
                      bytes(query.weights), query.aggregation, query.normalize,
                      query.return_matches);
}

// With no documents, whatever else is there must be the query's or nothing.
absl::Status CheckNoDocuments(const RawDocuments& raw, const Query& query) {
  if (raw.offsets.count != 0) {
    return Invalid("documents.offsets: ", raw.offsets.count, " offsets, but no lengths");
  }
  if (raw.id_count != 0) return Invalid("documents.ids: ", raw.id_count, " ids, but no lengths");
  if (raw.tokens.data_size != 0) {
    return Invalid("documents.lengths: none, but tokens.data has ", raw.tokens.data_size, " bytes");
  }
  if (raw.tokens.element_type != field::element_type::kUnspecified) {
    ASSIGN_OR_RETURN(const ElementType type,
                     ToElementType("documents.tokens", raw.tokens.element_type));
    if (type != query.element_type) {
      return Invalid("documents.tokens.element_type: ", ElementTypeName(type), ", the query's is ",
                     ElementTypeName(query.element_type));
    }
  }
  if (raw.tokens.dim != 0 && raw.tokens.dim != query.dim) {
    return Invalid("documents.tokens.dim: ", raw.tokens.dim, ", the query's is ", query.dim);
  }
  return absl::OkStatus();
}

// One length per document is what counts them; how many there are of everything else follows.
absl::Status CheckCounts(const RawDocuments& raw, const Limits& limits) {
  const size_t count = raw.lengths.count;
  RETURN_IF_ERROR(CheckLimit("max_documents_per_message", count, limits.max_documents_per_message));
  if (raw.offsets.count != 0 && raw.offsets.count != count) {
    return Invalid("documents.offsets: ", raw.offsets.count, " offsets for ", count,
                   " lengths; must be none or one for each");
  }
  if (raw.id_count != 0 && raw.id_count != count) {
    return Invalid("documents.ids: ", raw.id_count, " ids for ", count,
                   " lengths; must be none or one for each");
  }
  return CheckLimit("max_id_bytes", raw.longest_id, limits.max_id_bytes);
}

absl::Status CheckDocumentTokens(const RawMatrix& raw, const Query& query) {
  RETURN_IF_ERROR(CheckPresent("documents.tokens", raw));
  ASSIGN_OR_RETURN(const ElementType type, ToElementType("documents.tokens", raw.element_type));
  if (type != query.element_type) {
    return Invalid("documents.tokens.element_type: ", ElementTypeName(type), ", the query's is ",
                   ElementTypeName(query.element_type));
  }
  if (raw.dim != query.dim) {
    return Invalid("documents.tokens.dim: ", raw.dim, ", the query's is ", query.dim);
  }
  return absl::OkStatus();
}

absl::Status PlaceByOffsets(const RawDocuments& raw, DocumentChunk* chunk) {
  for (size_t i = 0; i < raw.lengths.count; ++i) {
    const uint64_t offset = raw.offsets.values[i];
    const uint32_t length = raw.lengths.values[i];
    if (offset > chunk->row_count || length > chunk->row_count - offset) {
      return Invalid("documents.offsets: document ", i, " has ", length, " rows from ", offset,
                     " on, tensor has ", chunk->row_count, " rows");
    }
    chunk->documents.push_back({.first_row = offset, .length = length});
  }
  return absl::OkStatus();
}

absl::Status PlaceBackToBack(const RawDocuments& raw, DocumentChunk* chunk) {
  if (chunk->document_tokens != chunk->row_count) {
    return Invalid("documents.lengths: sum is ", chunk->document_tokens, ", tensor has ",
                   chunk->row_count, " rows");
  }
  uint64_t first_row = 0;
  for (const uint32_t length : raw.lengths.values) {
    chunk->documents.push_back({.first_row = first_row, .length = length});
    first_row += length;
  }
  return absl::OkStatus();
}

// sum(lengths), and the work that it means.
absl::Status MeasureWork(const RawDocuments& raw, const Query& query, const Limits& limits,
                         DocumentChunk* chunk) {
  for (const uint32_t length : raw.lengths.values) {
    RETURN_IF_ERROR(CheckLimit("max_document_tokens", length, limits.max_document_tokens));
    chunk->document_tokens += length;
  }
  // Saturated: limits can be set so high that the product overflows, and must refuse it then too.
  constexpr uint64_t kOverflow = std::numeric_limits<uint64_t>::max();
  const uint64_t per_token = uint64_t{query.tokens} * query.dim;
  const bool fits = chunk->document_tokens <= kOverflow / per_token;
  chunk->multiply_adds = fits ? chunk->document_tokens * per_token : kOverflow;
  return CheckLimit("max_multiply_adds_per_message", chunk->multiply_adds,
                    std::min(limits.max_multiply_adds_per_message, kOverflow - 1));
}

}  // namespace

absl::Status CheckLimit(absl::string_view name, uint64_t value, uint64_t limit) {
  if (value <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(name, ": ", value, " exceeds ", limit));
}

absl::StatusOr<Query> ValidateQuery(const RawQuery& raw, const RawOptions& options,
                                    const MessageView& message, const Limits& limits) {
  Query query;
  RETURN_IF_ERROR(ReadQueryTokens(raw.tokens, message, limits, &query));
  ASSIGN_OR_RETURN(query.aggregation, ToAggregation(options.aggregation));
  RETURN_IF_ERROR(ReadWeights(raw.token_weights, &query));
  query.normalize = options.normalize;
  query.return_matches = options.return_matches;
  query.hash = HashQuery(query);
  return query;
}

absl::StatusOr<DocumentChunk> ValidateDocuments(RawDocuments raw, const Query& query,
                                                const Limits& limits,
                                                const UnitLimits& unit_limits) {
  DocumentChunk chunk;
  chunk.row_bytes = query.row_bytes();
  if (raw.lengths.count == 0) {
    RETURN_IF_ERROR(CheckNoDocuments(raw, query));
    return chunk;
  }
  RETURN_IF_ERROR(CheckCounts(raw, limits));
  RETURN_IF_ERROR(CheckDocumentTokens(raw.tokens, query));
  ASSIGN_OR_RETURN(chunk.row_count, CountRows("documents.tokens", raw.tokens, query.element_type));
  RETURN_IF_ERROR(MeasureWork(raw, query, limits, &chunk));
  chunk.data_offset = raw.tokens.data_offset;
  chunk.documents.reserve(raw.lengths.count);
  RETURN_IF_ERROR(raw.offsets.count != 0 ? PlaceByOffsets(raw, &chunk)
                                         : PlaceBackToBack(raw, &chunk));
  chunk.ids = std::move(raw.ids);
  BuildUnits(query, unit_limits, &chunk);
  return chunk;
}

}  // namespace maxsimd
