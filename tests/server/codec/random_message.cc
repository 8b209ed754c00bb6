#include "tests/server/codec/random_message.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/server/codec/naive_validation.h"

namespace maxsimd {
namespace {

std::string RandomBytes(size_t size, Random* random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

void Wrong(v1::RerankRequest* request, Random* random) {
  v1::Query* query = request->mutable_query();
  v1::Documents* documents = request->mutable_documents();
  v1::TokenMatrix* matrix =
      OneIn(2, random) ? query->mutable_tokens() : documents->mutable_tokens();
  switch (Below(14, random)) {
    case 0:
      return matrix->set_element_type(static_cast<v1::ElementType>(Below(6, random) - 1));
    case 1:
      return matrix->set_dim(Below(20, random));
    case 2:
      return matrix->mutable_data()->push_back('x');
    case 3:
      return matrix->clear_data();
    case 4:
      return query->clear_tokens();
    case 5:
      return query->add_token_weights(std::numeric_limits<float>::quiet_NaN());
    case 6:
      return query->add_token_weights(-9);
    case 7:
      return request->mutable_options()->set_aggregation(static_cast<v1::Aggregation>(3));
    case 8:
      return documents->add_lengths((*random)());
    case 9:
      return documents->add_offsets(~uint64_t{0} - Below(3, random));
    case 10:
      documents->add_ids(std::string(Below(20, random), 'i'));
      return;
    case 11:
      documents->add_ids("\xED\xA0\x80");
      return;  // A surrogate.
    case 12:
      matrix->set_data(RandomBytes(matrix->data().size(), random));
      return;
    default:
      return documents->clear_lengths();
  }
}

v1::TokenMatrix RandomMatrix(v1::ElementType type, uint32_t dim, uint32_t rows, Random* random) {
  v1::TokenMatrix matrix;
  matrix.set_element_type(type);
  matrix.set_dim(dim);
  std::string data = RandomBytes(rows * dim * ElementBytesOf(type), random);
  for (char& byte : data) byte &= 0x3F;  // So that every element is finite.
  matrix.set_data(std::move(data));
  return matrix;
}

}  // namespace

v1::Documents RandomDocuments(const v1::TokenMatrix& query, Random* random) {
  v1::Documents documents;
  const uint32_t count = OneIn(6, random) ? 0 : Below(12, random);
  const bool by_offset = OneIn(2, random);
  uint32_t rows = by_offset ? Below(16, random) : 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = Below(by_offset ? std::min(rows + 1, 6u) : 6, random);
    documents.add_lengths(length);
    if (by_offset) {
      documents.add_offsets(Below(rows - length + 1, random));
    } else {
      rows += length;
    }
  }
  if (count == 0) {
    if (OneIn(2, random)) documents.mutable_tokens();
    return documents;
  }
  if (OneIn(2, random)) {
    for (uint32_t i = 0; i < count; ++i) {
      documents.add_ids(OneIn(3, random) ? "\xC3\xA9t\xC3\xA9"
                                         : std::string(Below(8, random), 'a'));
    }
  }
  *documents.mutable_tokens() = RandomMatrix(query.element_type(), query.dim(), rows, random);
  return documents;
}

v1::RerankRequest RandomRequest(Random* random) {
  v1::RerankRequest request;
  const auto type = static_cast<v1::ElementType>(1 + Below(3, random));
  const uint32_t tokens = 1 + Below(4, random);
  *request.mutable_query()->mutable_tokens() =
      RandomMatrix(type, 1 + Below(5, random), tokens, random);
  if (OneIn(2, random)) {
    for (uint32_t i = 0; i < tokens; ++i) {
      request.mutable_query()->add_token_weights(static_cast<float>(Below(5, random)) - 1.0f);
    }
  }
  if (!OneIn(8, random)) {
    *request.mutable_documents() = RandomDocuments(request.query().tokens(), random);
  }
  if (OneIn(2, random)) {
    v1::RerankOptions* options = request.mutable_options();
    options->set_top_k(OneIn(2, random) ? Below(10, random) : (*random)());
    options->set_normalize(OneIn(2, random));
    options->set_aggregation(static_cast<v1::Aggregation>(Below(3, random)));
    options->set_return_matches(OneIn(2, random));
  }
  while (OneIn(3, random)) Wrong(&request, random);
  return request;
}

void Mutate(std::string* bytes, Random* random) {
  do {
    if (bytes->empty()) return;
    const uint32_t at = Below(static_cast<uint32_t>(bytes->size()), random);
    switch (Below(5, random)) {
      case 0:
        (*bytes)[at] = static_cast<char>((*random)());
        break;
      case 1:
        (*bytes)[at] = static_cast<char>((*bytes)[at] + (OneIn(2, random) ? 1 : -1));
        break;
      case 2:
        bytes->erase(at, 1 + Below(4, random));
        break;
      case 3:
        bytes->insert(at, bytes->substr(at, 1 + Below(6, random)));
        break;
      default:
        bytes->resize(at);
        break;
    }
  } while (OneIn(2, random));
}

SlicedMessage::SlicedMessage(const std::string& bytes, Random* random) {
  const uint32_t cuts = OneIn(4, random) ? 1 : 1 + Below(100, random);  // One in so many bytes.
  slices_.emplace_back();
  for (const char byte : bytes) {
    while (OneIn(cuts + 1, random)) slices_.emplace_back();
    slices_.back().push_back(static_cast<std::byte>(byte));
  }
  std::vector<MessageView::Slice> slices;
  for (std::vector<std::byte>& slice : slices_) {
    slice.shrink_to_fit();
    slices.emplace_back(slice);
  }
  view_ = MessageView(std::move(slices));
}

}  // namespace maxsimd
