#include "client/cli/random_input.h"

#include <random>
#include <utility>

#include "client/cli/command.h"
#include "kernels/element_conversion.h"

namespace maxsimd {
namespace {

constexpr double kMaxBytes = 16.0 * (uint64_t{1} << 30);

void FillRandomly(ElementType type, std::mt19937_64* random, std::string* bytes) {
  const size_t count = bytes->size() / ElementBytes(type);
  auto* elements = reinterpret_cast<std::byte*>(bytes->data());
  for (size_t i = 0; i < count; ++i) {
    // 24 bits, so that every value is exact in float32.
    const auto bits = static_cast<int32_t>((*random)() >> 40);
    StoreElement(type, static_cast<float>(bits - (1 << 23)) / (1 << 23), elements, i);
  }
}

}  // namespace

void InputShape::AddTo(CLI::App* parser) {
  parser->add_option("--documents", documents, "How many")
      ->check(CLI::Range(int64_t{0}, int64_t{10'000'000}))
      ->capture_default_str();
  parser->add_option("--document-tokens", document_tokens, "Of each, on average")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
      ->capture_default_str();
  parser->add_option("--query-tokens", query_tokens, "Of the query")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  parser->add_option("--dim", dim, "Elements of an embedding")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  parser->add_option("--element-type", element_type, "float32, float16 or bfloat16")
      ->check(IsElementType())
      ->capture_default_str();
  parser->add_option("--seed", seed, "Of the random data")
      ->check(CLI::Range(int64_t{0}, int64_t{INT64_MAX}))
      ->capture_default_str();
  parser->add_flag("--uniform", uniform, "All documents equally long");
  parser->parse_complete_callback([this] {
    const double rows = 2.0 * static_cast<double>(documents) * static_cast<double>(document_tokens);
    const double bytes = (rows + static_cast<double>(query_tokens)) * static_cast<double>(dim) * 4;
    if (bytes > kMaxBytes) throw CLI::ValidationError("--documents", "the shape takes over 16 GiB");
  });
}

ElementType InputShape::kernel_element_type() const {
  if (element_type == "float32") return ElementType::kFloat32;
  return element_type == "float16" ? ElementType::kFloat16 : ElementType::kBfloat16;
}

std::unique_ptr<RandomInput> MakeRandomInput(const InputShape& shape) {
  struct Embeddings {
    std::string query;
    std::string documents;
  };
  std::mt19937_64 random(static_cast<uint64_t>(shape.seed));
  auto made = std::make_unique<RandomInput>();
  uint64_t rows = 0;
  const auto mean = static_cast<uint64_t>(shape.document_tokens);
  for (int64_t i = 0; i < shape.documents; ++i) {
    const uint64_t length = shape.uniform ? mean : random() % (2 * mean + 1);
    made->lengths.push_back(static_cast<uint32_t>(length));
    rows += length;
  }
  const ElementType type = shape.kernel_element_type();
  const uint64_t row_bytes = static_cast<uint64_t>(shape.dim) * ElementBytes(type);
  auto embeddings = std::make_shared<Embeddings>();
  embeddings->query.resize(static_cast<uint64_t>(shape.query_tokens) * row_bytes);
  embeddings->documents.resize(rows * row_bytes);
  FillRandomly(type, &random, &embeddings->query);
  FillRandomly(type, &random, &embeddings->documents);
  const v1::ElementType wire_type = ElementTypeFromName(shape.element_type);
  const auto dim = static_cast<uint32_t>(shape.dim);
  made->input.query = {wire_type, dim, embeddings->query};
  made->input.documents = {wire_type, dim, embeddings->documents};
  made->input.lengths = made->lengths;
  made->input.owner = std::move(embeddings);
  return made;
}

}  // namespace maxsimd
