#include "server/codec/decode.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "maxsimd/v1/rerank.pb.h"
#include "tests/server/codec/decode_check.h"
#include "tests/server/codec/random_message.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two query tokens and two documents of 2 and 1 tokens; dim 2, bfloat16, zeros.
v1::RerankRequest SmallRequest() {
  v1::RerankRequest request;
  v1::TokenMatrix* query = request.mutable_query()->mutable_tokens();
  query->set_element_type(v1::ELEMENT_TYPE_BFLOAT16);
  query->set_dim(2);
  query->set_data(std::string(2 * 4, '\0'));
  *request.mutable_documents()->mutable_tokens() = *query;
  request.mutable_documents()->mutable_tokens()->set_data(std::string(3 * 4, '\0'));
  request.mutable_documents()->add_lengths(2);
  request.mutable_documents()->add_lengths(1);
  return request;
}

MessageView ViewOf(const std::string& bytes) {
  return MessageView({{reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}});
}

absl::StatusOr<StartMessage> Decode(const std::string& bytes) {
  return DecodeRerank(ViewOf(bytes), {}, {});
}

// The request, with more bytes behind it.
absl::Status DecodeWith(const std::string& suffix) {
  return Decode(SmallRequest().SerializeAsString() + suffix).status();
}

TEST(DecodeTest, ReadsWhatARequestSays) {
  v1::RerankRequest request = SmallRequest();
  request.mutable_query()->add_token_weights(0.5);
  request.mutable_query()->add_token_weights(-2);
  request.mutable_documents()->add_ids("one");
  request.mutable_documents()->add_ids("two");
  request.mutable_options()->set_top_k(~uint32_t{0});
  request.mutable_options()->set_normalize(true);
  request.mutable_options()->set_return_matches(true);
  const absl::StatusOr<StartMessage> start = Decode(request.SerializeAsString());
  ASSERT_EQ(start.status(), absl::OkStatus());
  EXPECT_EQ(start->top_k, ~uint32_t{0});
  EXPECT_EQ(start->query->element_type, ElementType::kBfloat16);
  EXPECT_EQ(start->query->tokens, 2u);
  EXPECT_EQ(start->query->dim, 2u);
  EXPECT_THAT(start->query->weights, ElementsAre(0.5f, -2.0f));
  EXPECT_EQ(start->query->aggregation, Aggregation::kSum);
  EXPECT_TRUE(start->query->normalize);
  EXPECT_TRUE(start->query->return_matches);
  const DocumentChunk& documents = start->documents;
  EXPECT_EQ(documents.row_count, 3u);
  EXPECT_EQ(documents.row_bytes, 4u);
  ASSERT_EQ(documents.documents.size(), 2u);
  EXPECT_EQ(documents.documents[1].first_row, 2u);
  EXPECT_EQ(documents.documents[1].length, 1u);
  EXPECT_EQ(documents.ids[1], "two");
  EXPECT_EQ(documents.document_tokens, 3u);
  EXPECT_EQ(documents.multiply_adds, 3u * 2 * 2);
  EXPECT_GT(documents.memory_bytes(), 0u);
}

TEST(DecodeTest, EqualQueriesHaveEqualHashes) {
  v1::RerankRequest request = SmallRequest();
  const absl::StatusOr<StartMessage> a = Decode(request.SerializeAsString());
  const absl::StatusOr<StartMessage> b = Decode(request.SerializeAsString());
  request.mutable_options()->set_normalize(true);
  const absl::StatusOr<StartMessage> c = Decode(request.SerializeAsString());
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(*a->query, *b->query);
  EXPECT_NE(a->query->hash, c->query->hash);
  EXPECT_FALSE(*a->query == *c->query);
}

TEST(DecodeTest, QueryWithoutDocumentsIsARequest) {
  v1::RerankRequest request = SmallRequest();
  request.clear_documents();
  EXPECT_EQ(Decode(request.SerializeAsString()).status(), absl::OkStatus());
  request.mutable_documents()->mutable_tokens();
  EXPECT_EQ(Decode(request.SerializeAsString()).status(), absl::OkStatus());
  *request.mutable_documents()->mutable_tokens() = request.query().tokens();
  request.mutable_documents()->mutable_tokens()->clear_data();
  EXPECT_EQ(Decode(request.SerializeAsString()).status(), absl::OkStatus());
}

TEST(DecodeTest, NeverTouchesTheDocumentsEmbeddingBytes) {
  v1::RerankRequest request = SmallRequest();
  constexpr uint32_t kRows = 1 << 16;
  request.mutable_documents()->clear_tokens();
  request.mutable_documents()->clear_lengths();
  for (const uint32_t length : {kRows / 2, kRows / 2}) {
    request.mutable_documents()->add_lengths(length);
  }
  // The matrix by hand, so that its data can lie in pages that nobody may read.
  std::string matrix;
  request.query().tokens().SerializeToString(&matrix);
  const auto tagged = [](const char* tag, uint32_t size) {  // Four-byte lengths, for simplicity.
    std::string bytes = tag;
    for (int i = 0; i < 3; ++i) bytes.push_back(static_cast<char>(0x80 | (size >> (7 * i) & 0x7F)));
    bytes.push_back(static_cast<char>(size >> 21));
    return bytes;
  };
  const uint32_t data_size = kRows * 4;
  const std::string data = tagged("\x1A", data_size);
  const uint32_t matrix_size = static_cast<uint32_t>(matrix.size() + data.size()) + data_size;
  const std::string tokens = tagged("\x0A", matrix_size);
  const std::string documents = tagged("\x12", static_cast<uint32_t>(tokens.size()) + matrix_size);
  const std::string head = request.SerializeAsString() + documents + tokens + matrix + data;

  void* pages = mmap(nullptr, data_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const MessageView message(
      {ViewOf(head).slices()[0], {static_cast<const std::byte*>(pages), data_size}});
  const absl::StatusOr<StartMessage> start = DecodeRerank(message, {}, {});
  munmap(pages, data_size);
  ASSERT_EQ(start.status(), absl::OkStatus());
  EXPECT_EQ(start->documents.data_offset, head.size());
  EXPECT_EQ(start->documents.row_count, kRows);
}

TEST(DecodeTest, MillionOverlappingDocumentsAreRefusedByTheLimitsName) {
  v1::RerankRequest request = SmallRequest();
  request.mutable_documents()->clear_lengths();
  for (int i = 0; i < 1'000'000; ++i) {
    request.mutable_documents()->add_lengths(3);
    request.mutable_documents()->add_offsets(0);
  }
  const absl::Status status = Decode(request.SerializeAsString()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_documents_per_message: 1000000 "));
}

TEST(DecodeTest, TakesTheLimitsOfTheContractAtTheirDefaults) {
  v1::RerankRequest request = SmallRequest();
  request.mutable_documents()->clear_lengths();
  for (int i = 0; i < 100'000; ++i) {
    request.mutable_documents()->add_lengths(3);
    request.mutable_documents()->add_offsets(0);
    request.mutable_documents()->add_ids(std::string(256, 'i'));
  }
  const absl::StatusOr<StartMessage> start = Decode(request.SerializeAsString());
  ASSERT_EQ(start.status(), absl::OkStatus());
  EXPECT_EQ(start->documents.ids[99'999].size(), 256u);
  uint32_t documents = 0;
  for (const Unit& unit : start->documents.units) {
    EXPECT_LE(unit.result_bytes, UnitLimits().max_result_bytes);
    documents += unit.count;
  }
  EXPECT_EQ(documents, 100'000u);
}

TEST(DecodeTest, SkipsGroupsAsDeepAsTheGeneratedParserDoes) {
  const std::string base = SmallRequest().SerializeAsString();
  for (int depth = 95; depth <= 105; ++depth) {
    std::string groups;
    for (int i = 0; i < depth; ++i) groups += "\x7B";  // Field 15.
    for (int i = 0; i < depth; ++i) groups += "\x7C";
    EXPECT_EQ(DecoderDifference(DecoderEntry::kRerank, base + groups, 1), "") << depth;
    EXPECT_EQ(DecodeWith(groups).ok(), depth <= 100) << depth;
    const std::string in_query = "\x0A" + std::string(1, static_cast<char>(0x80 | 2 * depth)) +
                                 std::string(1, static_cast<char>(2 * depth >> 7)) + groups;
    EXPECT_EQ(DecoderDifference(DecoderEntry::kRerank, base + in_query, 1), "") << depth;
  }
}

struct Suffix {
  const char* name;
  std::string bytes;
  bool well_formed;
};

// Behind a valid request: what the generated parser takes, and what it doesn't.
TEST(DecodeTest, IsAsStrictAsTheGeneratedParser) {
  using namespace std::string_literals;  // NOLINT: for bytes that are 0.
  const Suffix suffixes[] = {
      {"tag 0", "\0"s, false},
      {"tag 0 of two bytes", "\x80\0"s, false},
      {"field 0", "\x01xxxxxxxx"s, false},
      {"end of no group", "\x7C"s, false},
      {"group without end", "\x7B"s, false},
      {"group with another's end", "\x7B\x74"s, false},
      {"wire type 6", "\x7E\0"s, false},
      {"wire type 7", "\x7F\0"s, false},
      {"tag of five bytes", "\xF8\x80\x80\x80\0\x01"s, true},
      {"tag of five bytes with high bits", "\xF8\x80\x80\x80\x70\x01"s, true},
      {"tag of six bytes", "\xF8\x80\x80\x80\x80\0\x01"s, false},
      {"varint of ten bytes", "\x78\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7F"s, true},
      {"varint of eleven bytes", "\x78\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0"s, false},
      {"length of five bytes", "\x7A\x81\x80\x80\x80\0x"s, true},
      {"length of six bytes", "\x7A\x81\x80\x80\x80\x80\0x"s, false},
      {"length of 2 GiB", "\x7A\x80\x80\x80\x80\x08"s, false},
      {"length beyond the end", "\x7A\x02x"s, false},
      {"fixed64 cut", "\x79xxxxxxx"s, false},
      {"fixed32 cut", "\x7Dxxx"s, false},
      {"data beyond its matrix", "\x0A\x04\x0A\x02\x1A\x01x"s, false},
      {"varint beyond its packed field", "\x12\x03\x12\x01\x80\x01"s, false},
      {"packed floats of 5 bytes", "\x0A\x07\x12\x05xxxxx"s, false},
      {"empty packed floats", "\x0A\x02\x12\0"s, true},
      {"known number of another type", "\x08\x05"s, true},
  };
  for (const Suffix& suffix : suffixes) {
    const std::string message = SmallRequest().SerializeAsString() + suffix.bytes;
    EXPECT_EQ(DecoderDifference(DecoderEntry::kRerank, message, 1), "") << suffix.name;
    const absl::Status status = DecodeWith(suffix.bytes);
    EXPECT_EQ(status, suffix.well_formed ? absl::OkStatus()
                                         : absl::InvalidArgumentError("malformed message"))
        << suffix.name;
  }
}

TEST(DecodeTest, IdsMustBeUtf8AndTheErrorSaysSo) {
  const absl::Status status = DecodeWith("\x12\x03\x22\x01\xFF");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("documents.ids:"));
}

TEST(DecodeStreamTest, EachMessageMustCarryWhatItsPlaceInTheStreamAsksFor) {
  const v1::RerankRequest request = SmallRequest();
  v1::RerankStreamRequest start;
  *start.mutable_start() = request;
  v1::RerankStreamRequest documents;
  *documents.mutable_documents() = request.documents();
  const std::string start_bytes = start.SerializeAsString();
  const std::string documents_bytes = documents.SerializeAsString();

  const absl::StatusOr<StartMessage> first = DecodeStreamStart(ViewOf(start_bytes), {}, {});
  ASSERT_EQ(first.status(), absl::OkStatus());
  const auto later = [&](const std::string& bytes) {
    return DecodeStreamDocuments(ViewOf(bytes), *first->query, {}, {}).status();
  };
  EXPECT_EQ(later(documents_bytes), absl::OkStatus());
  EXPECT_EQ(later(start_bytes + documents_bytes), absl::OkStatus());  // Displaced.

  const absl::Status errors[] = {later(start_bytes), later(documents_bytes + start_bytes),
                                 later(""),
                                 DecodeStreamStart(ViewOf(documents_bytes), {}, {}).status(),
                                 DecodeStreamStart(ViewOf(""), {}, {}).status()};
  for (const absl::Status& error : errors) {
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(error.message()), HasSubstr("start"));
    EXPECT_THAT(std::string(error.message()), HasSubstr("documents"));
  }
}

TEST(DecodeStreamTest, StartTwiceInOneMessageMergesAndEmptyDocumentsAreAChunk) {
  v1::RerankStreamRequest query;
  *query.mutable_start()->mutable_query() = SmallRequest().query();
  v1::RerankStreamRequest documents;
  *documents.mutable_start()->mutable_documents() = SmallRequest().documents();
  const std::string both = query.SerializeAsString() + documents.SerializeAsString();
  const absl::StatusOr<StartMessage> start = DecodeStreamStart(ViewOf(both), {}, {});
  ASSERT_EQ(start.status(), absl::OkStatus());
  EXPECT_EQ(start->documents.documents.size(), 2u);

  v1::RerankStreamRequest none;
  none.mutable_documents();
  const std::string empty = none.SerializeAsString();
  const absl::StatusOr<DocumentChunk> chunk =
      DecodeStreamDocuments(ViewOf(empty), *start->query, {}, {});
  ASSERT_EQ(chunk.status(), absl::OkStatus());
  EXPECT_TRUE(chunk->documents.empty());
}

}  // namespace
}  // namespace maxsimd
