#include "tests/testing/fake_work.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

#include "kernels/element_conversion.h"
#include "server/codec/units.h"

namespace maxsimd {
namespace {

std::vector<std::byte> RandomElements(std::mt19937& random, ElementType type, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<std::byte> elements(count * ElementBytes(type));
  for (size_t i = 0; i < count; ++i) StoreElement(type, normal(random), elements.data(), i);
  return elements;
}

std::vector<MessageView::Slice> OddSlices(std::mt19937& random,
                                          const std::vector<std::byte>& data) {
  std::vector<MessageView::Slice> slices;
  std::uniform_int_distribution<size_t> size(1, 97);
  for (size_t offset = 0; offset < data.size();) {
    const size_t part = std::min(size(random), data.size() - offset);
    slices.emplace_back(data.data() + offset, part);
    offset += part;
  }
  return slices;
}

std::vector<ReferenceDocument> Expected(const Query& query, const std::byte* rows,
                                        const DocumentChunk& chunk) {
  QueryGroup group;
  group.query = query.view();
  group.element_type = query.element_type;
  group.rows = rows;
  group.row_pitch_bytes = query.row_bytes();
  group.row_count = chunk.row_count;
  group.documents = chunk.documents;
  return ReferenceScores(group);
}

}  // namespace

std::shared_ptr<Work> WorkOf(std::vector<Unit> units, uint32_t dim, ElementType type) {
  auto query = std::make_shared<Query>();
  query->element_type = type;
  query->tokens = 1;
  query->dim = dim;
  auto work = std::make_shared<Work>();
  work->chunk.row_bytes = query->row_bytes();
  work->query = std::move(query);
  work->recipient = std::make_shared<FakeRecipient>();
  for (Unit& unit : units) {
    unit.first_row = work->chunk.row_count;
    unit.first = static_cast<uint32_t>(work->chunk.order.size());
    unit.count = 1;
    work->chunk.order.push_back(unit.first);
    work->chunk.documents.push_back({unit.first_row, static_cast<uint32_t>(unit.row_count)});
    work->chunk.row_count += unit.row_count;
  }
  work->chunk.units = std::move(units);
  return work;
}

std::shared_ptr<Query> RandomQuery(std::mt19937& random, ElementType type, uint32_t tokens,
                                   uint32_t dim) {
  auto query = std::make_shared<Query>();
  query->element_type = type;
  query->tokens = tokens;
  query->dim = dim;
  query->data = RandomElements(random, type, size_t{tokens} * dim);
  SetHash(*query);
  return query;
}

void SetHash(Query& query) {
  const absl::string_view data(reinterpret_cast<const char*>(query.data.data()), query.data.size());
  query.hash = absl::HashOf(query.element_type, query.tokens, query.dim, data, query.weights,
                            query.aggregation, query.normalize, query.return_matches);
}

FakeMessage RandomMessage(std::mt19937& random, const std::shared_ptr<const Query>& query,
                          const std::shared_ptr<Recipient>& recipient,
                          const std::vector<uint32_t>& lengths, uint64_t first_index,
                          const UnitLimits& limits) {
  std::vector<DocumentRows> documents;
  uint64_t rows = 0;
  for (const uint32_t length : lengths) {
    documents.push_back({rows, length});
    rows += length;
  }
  return RandomMessage(random, query, recipient, documents, rows, first_index, limits);
}

FakeMessage RandomMessage(std::mt19937& random, const std::shared_ptr<const Query>& query,
                          const std::shared_ptr<Recipient>& recipient,
                          const std::vector<DocumentRows>& documents, uint64_t rows,
                          uint64_t first_index, const UnitLimits& limits) {
  constexpr size_t kBefore = 3;  // Bytes of other fields, so that no row is aligned.
  FakeMessage message;
  std::vector<std::byte> data = RandomElements(random, query->element_type, rows * query->dim);
  message.data_bytes = data.size();
  data.insert(data.begin(), kBefore, std::byte{0xff});
  const auto owned = std::make_shared<std::vector<std::byte>>(std::move(data));

  auto work = std::make_shared<Work>();
  work->query = query;
  work->recipient = recipient;
  work->first_index = first_index;
  work->message = MessageView(OddSlices(random, *owned));
  work->message_owner = owned;
  DocumentChunk& chunk = work->chunk;
  chunk.data_offset = kBefore;
  chunk.row_count = rows;
  chunk.row_bytes = query->row_bytes();
  chunk.documents = documents;
  BuildUnits(*query, limits, &chunk);
  for (const Unit& unit : chunk.units) chunk.multiply_adds += unit.multiply_adds;
  message.expected = Expected(*query, owned->data() + kBefore, chunk);
  message.work = std::move(work);
  return message;
}

}  // namespace maxsimd
