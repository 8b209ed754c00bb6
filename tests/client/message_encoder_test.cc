#include "client/message_encoder.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

std::string Join(const MessageParts& parts) {
  std::string bytes;
  for (const MessagePart& part : parts) {
    bytes += part.owned;
    bytes.append(part.borrowed.data(), part.borrowed.size());
  }
  EXPECT_EQ(bytes.size(), TotalBytes(parts));
  return bytes;
}

// An input with all its memory.
struct Sample {
  std::string query_data;
  std::string document_data;
  std::vector<float> weights;
  std::vector<uint32_t> lengths;
  std::vector<uint64_t> offsets;
  std::vector<std::string> ids;
  RerankInput input;

  void Link(v1::ElementType type, uint32_t dim) {
    input.query = {type, dim, query_data};
    input.documents = {type, dim, document_data};
    input.weights = weights;
    input.lengths = lengths;
    input.offsets = offsets;
    input.ids = ids;
  }
};

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

Sample RandomSample(std::mt19937* random) {
  const auto below = [&](uint32_t n) { return (*random)() % n; };
  Sample sample;
  const uint32_t dim = 1 + below(200);
  const auto type = static_cast<v1::ElementType>(1 + below(3));
  const uint64_t row_bytes = dim * ElementBytes(type);
  uint64_t rows = 0;
  for (uint32_t i = below(40); i > 0; --i) {
    sample.lengths.push_back(below(200));
    rows += sample.lengths.back();
  }
  if (below(2) == 1) {
    for (uint32_t length : sample.lengths) sample.offsets.push_back(below(rows - length + 1));
  }
  if (below(2) == 1) {
    for (size_t i = 0; i < sample.lengths.size(); ++i)
      sample.ids.push_back(std::string(below(300), 'x'));
  }
  if (below(2) == 1) sample.weights = {1.5f, -2.0f, 0.0f};
  sample.query_data = RandomBytes(random, 3 * row_bytes);
  sample.document_data = RandomBytes(random, rows * row_bytes);
  sample.input.options.set_top_k(below(3) * 1000);
  sample.input.options.set_normalize(below(2) == 1);
  sample.input.options.set_aggregation(static_cast<v1::Aggregation>(below(3)));
  sample.Link(type, dim);
  return sample;
}

void SetTokens(const TokenMatrixView& view, absl::string_view data, v1::TokenMatrix* matrix) {
  matrix->set_element_type(view.element_type);
  matrix->set_dim(view.dim);
  matrix->set_data(std::string(data));
}

v1::Documents ExpectedDocuments(const RerankInput& input, const Chunk& chunk) {
  v1::Documents documents;
  std::string data;
  for (const RowRange& range : chunk.ranges) {
    const uint64_t row_bytes = RowBytes(input.documents);
    data += std::string(input.documents.data.substr(range.begin * row_bytes,
                                                    (range.end - range.begin) * row_bytes));
  }
  SetTokens(input.documents, data, documents.mutable_tokens());
  const std::vector<uint64_t> offsets =
      input.offsets.empty() ? std::vector<uint64_t>{} : RebasedOffsets(LayoutOf(input), chunk);
  for (size_t i = 0; i < chunk.document_count; ++i) {
    documents.add_lengths(input.lengths[chunk.first_document + i]);
    if (!offsets.empty()) documents.add_offsets(offsets[i]);
    if (!input.ids.empty()) documents.add_ids(input.ids[chunk.first_document + i]);
  }
  return documents;
}

v1::RerankRequest ExpectedRequest(const RerankInput& input, const Chunk& chunk) {
  v1::RerankRequest request;
  SetTokens(input.query, input.query.data, request.mutable_query()->mutable_tokens());
  for (float weight : input.weights) request.mutable_query()->add_token_weights(weight);
  if (chunk.document_count > 0) *request.mutable_documents() = ExpectedDocuments(input, chunk);
  *request.mutable_options() = input.options;
  return request;
}

TEST(MessageEncoderTest, WritesWhatTheGeneratedCodeWrites) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const Sample sample = RandomSample(&random);
    const auto calls = PlanCalls(LayoutOf(sample.input), v1::Limits(), StartBytes(sample.input),
                                 {.target_bytes = 1000 + random() % 100000});
    ASSERT_TRUE(calls.ok());
    for (const PlannedCall& call : *calls) {
      for (const Chunk& chunk : call.chunks) {
        v1::RerankStreamRequest start, documents;
        *start.mutable_start() = ExpectedRequest(sample.input, chunk);
        *documents.mutable_documents() = ExpectedDocuments(sample.input, chunk);
        EXPECT_EQ(Join(EncodeRequest(sample.input, chunk)), start.start().SerializeAsString());
        EXPECT_EQ(Join(EncodeStreamStart(sample.input, chunk)), start.SerializeAsString());
        EXPECT_EQ(Join(EncodeStreamDocuments(sample.input, chunk)), documents.SerializeAsString());
      }
    }
  }
}

TEST(MessageEncoderTest, KeepsEachMessageWithinThePlannedSize) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const Sample sample = RandomSample(&random);
    v1::Limits limits;
    limits.set_max_stream_message_bytes(200'000 + random() % 300'000);
    limits.set_max_message_bytes(500'000 + random() % 1'000'000);
    const auto calls = PlanCalls(LayoutOf(sample.input), limits, StartBytes(sample.input),
                                 {.target_bytes = random() % 100'000});
    ASSERT_TRUE(calls.ok()) << calls.status();
    for (const PlannedCall& call : *calls) {
      for (size_t c = 0; c < call.chunks.size(); ++c) {
        const Chunk& chunk = call.chunks[c];
        if (!call.stream) {
          EXPECT_LE(TotalBytes(EncodeRequest(sample.input, chunk)), limits.max_message_bytes());
          continue;
        }
        const MessageParts parts = c == 0 ? EncodeStreamStart(sample.input, chunk)
                                          : EncodeStreamDocuments(sample.input, chunk);
        EXPECT_LE(TotalBytes(parts), limits.max_stream_message_bytes());
      }
    }
  }
}

TEST(MessageEncoderTest, ViewsTheEmbeddingsInPlace) {
  Sample sample;
  sample.query_data = std::string(8, 'q');
  sample.document_data = std::string(40, 'd');
  sample.lengths = {2, 3};
  sample.Link(v1::ELEMENT_TYPE_FLOAT32, 2);
  const Chunk chunk{.first_document = 0, .document_count = 2, .ranges = {{0, 5}}};
  size_t found = 0;
  for (const MessagePart& part : EncodeRequest(sample.input, chunk)) {
    if (part.borrowed.data() == sample.document_data.data()) found = part.borrowed.size();
  }
  EXPECT_EQ(found, 40u);
}

}  // namespace
}  // namespace maxsimd
