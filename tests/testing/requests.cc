#include "tests/testing/requests.h"

#include <algorithm>
#include <utility>

#include "kernels/element_conversion.h"
#include "tests/testing/raw_call.h"

namespace maxsimd {
namespace {

ElementType ToElementType(v1::ElementType type) {
  switch (type) {
    case v1::ELEMENT_TYPE_FLOAT16:
      return ElementType::kFloat16;
    case v1::ELEMENT_TYPE_BFLOAT16:
      return ElementType::kBfloat16;
    default:
      return ElementType::kFloat32;
  }
}

v1::ElementType ToProto(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return v1::ELEMENT_TYPE_FLOAT16;
    case ElementType::kBfloat16:
      return v1::ELEMENT_TYPE_BFLOAT16;
    case ElementType::kFloat32:
      break;
  }
  return v1::ELEMENT_TYPE_FLOAT32;
}

v1::TokenMatrix MakeMatrix(const Shape& shape, uint64_t rows, std::mt19937& random) {
  v1::TokenMatrix matrix;
  matrix.set_element_type(shape.element_type);
  matrix.set_dim(shape.dim);
  const ElementType type = ToElementType(shape.element_type);
  const size_t count = rows * shape.dim;
  std::string& data = *matrix.mutable_data();
  data.resize(count * ElementBytes(type));
  auto* const elements = reinterpret_cast<std::byte*>(data.data());
  for (size_t i = 0; i < count; ++i) {
    // Of 24 bits, so that every platform draws the same.
    StoreElement(type, static_cast<float>(random() >> 8) / (1 << 23) - 1, elements, i);
  }
  return matrix;
}

std::string ToString(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

uint64_t FirstRow(const v1::Documents& documents, int document) {
  if (documents.offsets_size() > 0) return documents.offsets(document);
  uint64_t row = 0;
  for (int i = 0; i < document; ++i) row += documents.lengths(i);
  return row;
}

// Documents [first, last), with the rows from their first to their last.
v1::Documents Slice(const v1::Documents& documents, int first, int last) {
  v1::Documents slice;
  if (first == last) return slice;
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (int i = first; i < last; ++i) {
    begin = std::min(begin, FirstRow(documents, i));
    end = std::max(end, FirstRow(documents, i) + documents.lengths(i));
  }
  const v1::TokenMatrix& tokens = documents.tokens();
  const size_t row_bytes = tokens.dim() * ElementBytes(ToElementType(tokens.element_type()));
  slice.mutable_tokens()->set_element_type(tokens.element_type());
  slice.mutable_tokens()->set_dim(tokens.dim());
  slice.mutable_tokens()->set_data(
      tokens.data().substr(begin * row_bytes, (end - begin) * row_bytes));
  for (int i = first; i < last; ++i) {
    slice.add_lengths(documents.lengths(i));
    if (documents.offsets_size() > 0) slice.add_offsets(documents.offsets(i) - begin);
    if (documents.ids_size() > 0) slice.add_ids(documents.ids(i));
  }
  return slice;
}

}  // namespace

v1::RerankRequest MakeRequest(const Shape& shape) {
  std::mt19937 random(static_cast<uint32_t>(shape.seed));
  v1::RerankRequest request;
  *request.mutable_query()->mutable_tokens() = MakeMatrix(shape, shape.query_tokens, random);
  uint64_t rows = 0;
  v1::Documents& documents = *request.mutable_documents();
  for (const uint32_t length : shape.lengths) {
    documents.add_lengths(length);
    rows += length;
  }
  *documents.mutable_tokens() = MakeMatrix(shape, rows, random);
  return request;
}

v1::RerankRequest MakeUniformRequest(uint32_t documents, uint32_t length, Shape shape) {
  shape.lengths.assign(documents, length);
  return MakeRequest(shape);
}

v1::RerankRequest ToRequest(const CaseFile& file) {
  v1::RerankRequest request;
  v1::TokenMatrix& query = *request.mutable_query()->mutable_tokens();
  query.set_element_type(ToProto(file.element_type));
  query.set_dim(file.dim);
  query.set_data(ToString(file.query));
  for (const float weight : file.weights) request.mutable_query()->add_token_weights(weight);
  v1::Documents& documents = *request.mutable_documents();
  documents.mutable_tokens()->set_element_type(ToProto(file.element_type));
  documents.mutable_tokens()->set_dim(file.dim);
  documents.mutable_tokens()->set_data(ToString(file.rows));
  for (size_t i = 0; i < file.documents.size(); ++i) {
    documents.add_lengths(file.documents[i].length);
    if (file.has_offsets) documents.add_offsets(file.documents[i].first_row);
    documents.add_ids(file.name + " " + std::to_string(i));
  }
  v1::RerankOptions& options = *request.mutable_options();
  options.set_top_k(file.top_k);
  options.set_normalize(file.normalize);
  options.set_aggregation(file.aggregation == Aggregation::kMean ? v1::AGGREGATION_MEAN
                                                                 : v1::AGGREGATION_SUM);
  options.set_return_matches(file.return_matches);
  return request;
}

grpc::ByteBuffer StreamStart(const v1::RerankRequest& request) {
  v1::RerankStreamRequest message;
  *message.mutable_start() = request;
  return ToBuffer(message);
}

grpc::ByteBuffer StreamChunk(const v1::RerankRequest& request) {
  v1::RerankStreamRequest message;
  *message.mutable_documents() = request.documents();
  return ToBuffer(message);
}

std::vector<v1::RerankStreamRequest> Cut(const v1::RerankRequest& request,
                                         const std::vector<int>& cuts) {
  std::vector<int> ends = cuts;
  ends.push_back(request.documents().lengths_size());
  std::vector<v1::RerankStreamRequest> messages;
  int first = 0;
  for (const int end : ends) {
    v1::RerankStreamRequest& message = messages.emplace_back();
    v1::Documents slice = Slice(request.documents(), first, end);
    if (messages.size() == 1) {
      *message.mutable_start()->mutable_query() = request.query();
      *message.mutable_start()->mutable_options() = request.options();
      *message.mutable_start()->mutable_documents() = std::move(slice);
    } else {
      *message.mutable_documents() = std::move(slice);
    }
    first = end;
  }
  return messages;
}

std::vector<v1::RerankStreamRequest> CutAnywhere(const v1::RerankRequest& request,
                                                 std::mt19937& random) {
  const int documents = request.documents().lengths_size();
  std::vector<int> cuts(random() % (documents + 2));
  for (int& cut : cuts) cut = static_cast<int>(random() % (documents + 1));
  std::sort(cuts.begin(), cuts.end());
  return Cut(request, cuts);
}

grpc::ByteBuffer SliceAnywhere(const std::string& bytes, std::mt19937& random) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min<size_t>(bytes.size() - at, 1 + random() % (1 << random() % 14));
    slices.emplace_back(bytes.data() + at, size);
    at += size;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace maxsimd
