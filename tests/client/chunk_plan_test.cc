#include "client/chunk_plan.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/row_set.h"

namespace maxsimd {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRowBytes = 10;

v1::Limits GenerousLimits() {
  v1::Limits limits;
  limits.set_max_message_bytes(uint64_t{64} << 20);
  limits.set_max_stream_message_bytes(uint64_t{4} << 20);
  limits.set_max_document_tokens(65536);
  limits.set_max_documents_per_message(100000);
  limits.set_max_documents_per_stream(uint64_t{1} << 32);
  limits.set_max_multiply_adds_per_message(2'000'000'000'000);
  return limits;
}

DocumentLayout Layout(absl::Span<const uint32_t> lengths, absl::Span<const uint64_t> offsets = {}) {
  return {.row_bytes = kRowBytes,
          .multiply_adds_per_row = 7,
          .lengths = lengths,
          .offsets = offsets,
          .ids = {}};
}

uint64_t RowsIn(const Chunk& chunk) {
  uint64_t rows = 0;
  for (const RowRange& range : chunk.ranges) rows += range.end - range.begin;
  return rows;
}

// The row of the input that row `row` of the chunk's message holds.
uint64_t InputRow(const Chunk& chunk, uint64_t row) {
  for (const RowRange& range : chunk.ranges) {
    if (row < range.end - range.begin) return range.begin + row;
    row -= range.end - range.begin;
  }
  ADD_FAILURE() << "row beyond the message";
  return 0;
}

// Every document once, in order, with the rows it has in the input.
void ExpectSameDocuments(const DocumentLayout& layout, const std::vector<PlannedCall>& calls) {
  size_t next = 0;
  uint64_t first_row = 0;
  for (const PlannedCall& call : calls) {
    EXPECT_TRUE(call.stream || call.chunks.size() == 1);
    for (size_t c = 0; c < call.chunks.size(); ++c) {
      const Chunk& chunk = call.chunks[c];
      EXPECT_TRUE(chunk.document_count > 0 || c == 0);
      if (chunk.document_count > 0) {
        EXPECT_EQ(chunk.first_document, next);
      }
      std::vector<uint64_t> offsets(chunk.document_count);
      if (layout.offsets.empty()) {
        uint64_t row = 0;
        for (size_t i = 0; i < offsets.size(); ++i) {
          offsets[i] = row;
          row += layout.lengths[next + i];
        }
        EXPECT_EQ(row, RowsIn(chunk)) << "back to back documents must fill the message";
      } else {
        offsets = RebasedOffsets(layout, chunk);
      }
      for (uint64_t offset : offsets) {
        const uint32_t length = layout.lengths[next];
        const uint64_t expected = layout.offsets.empty() ? first_row : layout.offsets[next];
        EXPECT_LE(offset + length, RowsIn(chunk));
        for (uint32_t r = 0; r < length; ++r) {
          ASSERT_EQ(InputRow(chunk, offset + r), expected + r) << "document " << next;
        }
        first_row += length;
        ++next;
      }
    }
  }
  EXPECT_EQ(next, layout.lengths.size());
}

TEST(ChunkPlanTest, SendsWhatFitsOneSmallMessageAsOneUnaryCall) {
  const std::vector<uint32_t> lengths = {3, 0, 5};
  const auto calls = PlanCalls(Layout(lengths), GenerousLimits(), 100);
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), 1u);
  EXPECT_FALSE((*calls)[0].stream);
  ExpectSameDocuments(Layout(lengths), *calls);
}

TEST(ChunkPlanTest, SendsNoDocumentsAsOneUnaryCall) {
  const auto calls = PlanCalls(Layout({}), GenerousLimits(), 100);
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ(calls->size(), 1u);
  EXPECT_FALSE((*calls)[0].stream);
  ASSERT_EQ((*calls)[0].chunks.size(), 1u);
  EXPECT_EQ((*calls)[0].chunks[0].document_count, 0u);
}

TEST(ChunkPlanTest, StreamsWhatIsBiggerInChunksOfTheTarget) {
  const std::vector<uint32_t> lengths(100, 50);  // 500 bytes of rows each.
  const auto calls = PlanCalls(Layout(lengths), GenerousLimits(), 100, {.target_bytes = 5000});
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ(calls->size(), 1u);
  EXPECT_TRUE((*calls)[0].stream);
  for (const Chunk& chunk : (*calls)[0].chunks) {
    EXPECT_LE(RowsIn(chunk) * kRowBytes, 5000u);
    EXPECT_EQ(chunk.ranges.size(), 1u);
  }
  EXPECT_LE((*calls)[0].chunks.size(), 13u) << "chunks of less than 8 documents, where 9 fit";
  ExpectSameDocuments(Layout(lengths), *calls);
}

TEST(ChunkPlanTest, KeepsOverlappingDocumentsInOneMessageBeyondTheTarget) {
  std::vector<uint32_t> lengths(100, 20);
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < 100; ++i) offsets.push_back(10 * i);  // 1,010 rows, 10,100 bytes.
  const auto calls =
      PlanCalls(Layout(lengths, offsets), GenerousLimits(), 100, {.target_bytes = 1000});
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ((*calls)[0].chunks.size(), 1u);
  EXPECT_EQ(RowsIn((*calls)[0].chunks[0]), 1010u);
}

TEST(ChunkPlanTest, ResendsSharedRowsWhereTheHardLimitParts) {
  std::vector<uint32_t> lengths(100, 20);
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < 100; ++i) offsets.push_back(10 * i);
  v1::Limits limits = GenerousLimits();
  limits.set_max_stream_message_bytes(3000);
  const auto calls = PlanCalls(Layout(lengths, offsets), limits, 100, {.target_bytes = 1000});
  ASSERT_TRUE(calls.ok());
  EXPECT_GT((*calls)[0].chunks.size(), 1u);
  ExpectSameDocuments(Layout(lengths, offsets), *calls);
}

TEST(ChunkPlanTest, SendsADocumentTooBigForAStreamInAUnaryCallOfItsOwn) {
  v1::Limits limits = GenerousLimits();
  limits.set_max_stream_message_bytes(2000);
  const std::vector<uint32_t> lengths = {50, 50, 50, 50, 500, 50, 50};
  const auto calls = PlanCalls(Layout(lengths), limits, 100, {.target_bytes = 1000});
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), 3u);
  EXPECT_TRUE((*calls)[0].stream);
  EXPECT_FALSE((*calls)[1].stream);
  EXPECT_EQ((*calls)[1].chunks[0].first_document, 4u);
  ExpectSameDocuments(Layout(lengths), *calls);
}

TEST(ChunkPlanTest, MakesAllCallsUnaryWhereTheQueryIsTooBigForAStream) {
  v1::Limits limits = GenerousLimits();
  limits.set_max_stream_message_bytes(2000);
  limits.set_max_message_bytes(10000);
  const std::vector<uint32_t> lengths(20, 100);
  const auto calls = PlanCalls(Layout(lengths), limits, 5000, {.target_bytes = 1000});
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_GT(calls->size(), 1u);
  for (const PlannedCall& call : *calls) EXPECT_FALSE(call.stream);
  ExpectSameDocuments(Layout(lengths), *calls);
}

TEST(ChunkPlanTest, BeginsAStreamWithTheQueryAloneWhereTheFirstDocumentHasNoRoomBesideIt) {
  v1::Limits limits = GenerousLimits();
  limits.set_max_stream_message_bytes(2000);
  const std::vector<uint32_t> lengths(20, 100);
  const auto calls = PlanCalls(Layout(lengths), limits, 1500, {.target_bytes = 1000});
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), 1u);
  EXPECT_EQ((*calls)[0].chunks[0].document_count, 0u);
  ExpectSameDocuments(Layout(lengths), *calls);
}

TEST(ChunkPlanTest, SplitsAtTheDocumentsOfAStreamAndOfAMessage) {
  v1::Limits limits = GenerousLimits();
  limits.set_max_documents_per_stream(10);
  limits.set_max_documents_per_message(4);
  const std::vector<uint32_t> lengths(25, 1);
  const auto calls = PlanCalls(Layout(lengths), limits, 100);
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ(calls->size(), 3u);
  for (const PlannedCall& call : *calls) {
    for (const Chunk& chunk : call.chunks) EXPECT_LE(chunk.document_count, 4u);
  }
  ExpectSameDocuments(Layout(lengths), *calls);
}

TEST(ChunkPlanTest, NamesTheLimitThatOneDocumentExceeds) {
  const std::vector<uint32_t> lengths = {1, 100};
  const auto refusal = [&](const v1::Limits& limits) {
    const auto calls = PlanCalls(Layout(lengths), limits, 100);
    EXPECT_EQ(calls.status().code(), absl::StatusCode::kResourceExhausted);
    return std::string(calls.status().message());
  };
  v1::Limits limits = GenerousLimits();
  limits.set_max_document_tokens(99);
  EXPECT_EQ(refusal(limits),
            "document 1: 100 tokens, over the server's limit max_document_tokens = 99");
  limits = GenerousLimits();
  limits.set_max_multiply_adds_per_message(699);
  EXPECT_THAT(refusal(limits), HasSubstr("max_multiply_adds_per_message = 699"));
  limits = GenerousLimits();
  limits.set_max_stream_message_bytes(900);
  limits.set_max_message_bytes(1000);
  EXPECT_THAT(refusal(limits), HasSubstr("max_message_bytes = 1000"));
  limits.set_max_message_bytes(50);
  EXPECT_THAT(refusal(limits), HasSubstr("the query takes 100 bytes"));
}

TEST(ChunkPlanTest, SaturatesInsteadOfWrapping) {
  const std::vector<uint32_t> lengths = {0xFFFFFFFF};
  DocumentLayout layout = Layout(lengths);
  layout.row_bytes = uint64_t{1} << 40;
  layout.multiply_adds_per_row = uint64_t{1} << 40;
  v1::Limits limits = GenerousLimits();
  limits.set_max_document_tokens(0);
  EXPECT_FALSE(PlanCalls(layout, limits, 100).ok());
  limits.set_max_multiply_adds_per_message(0);
  EXPECT_THAT(std::string(PlanCalls(layout, limits, 100).status().message()),
              HasSubstr("max_message_bytes"));
}

TEST(ChunkPlanTest, KeepsAllDocumentsWhateverTheLimits) {
  std::mt19937 random(1);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    const uint64_t rows = 1 + below(300);
    std::vector<uint32_t> lengths(below(60));
    std::vector<uint64_t> offsets;
    for (uint32_t& length : lengths) length = below(std::min<uint64_t>(rows, 30) + 1);
    if (round % 2 == 0) {
      for (uint32_t length : lengths) offsets.push_back(below(rows - length + 1));
    }
    v1::Limits limits = GenerousLimits();
    limits.set_max_stream_message_bytes(400 + below(1000));
    limits.set_max_message_bytes(700 + below(2000));
    limits.set_max_documents_per_message(1 + below(20));
    limits.set_max_documents_per_stream(1 + below(60));
    limits.set_max_multiply_adds_per_message(7 * (30 + below(200)));
    const DocumentLayout layout = Layout(lengths, offsets);
    const PlanOptions options{.rpc = static_cast<RpcChoice>(below(3)),
                              .target_bytes = 200 + below(500)};
    const auto calls = PlanCalls(layout, limits, 10 + below(200), options);
    ASSERT_TRUE(calls.ok()) << calls.status();
    ExpectSameDocuments(layout, *calls);
    for (const PlannedCall& call : *calls) {
      for (const Chunk& chunk : call.chunks) {
        const uint64_t limit =
            call.stream ? limits.max_stream_message_bytes() : limits.max_message_bytes();
        EXPECT_LE(RowsIn(chunk) * kRowBytes, limit);
        EXPECT_LE(chunk.document_count, limits.max_documents_per_message());
      }
    }
  }
}

TEST(RowSetTest, CountsAndJoinsLikeASetOfRows) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    RowSet set;
    std::vector<bool> rows(64);
    for (int i = 0; i < 12; ++i) {
      const uint64_t begin = random() % 60;
      const RowRange range{begin, begin + random() % 5};
      const auto first = rows.begin() + begin;
      EXPECT_EQ(set.CountMissing(range),
                uint64_t(std::count(first, rows.begin() + range.end, false)));
      set.Add(range);
      std::fill(first, rows.begin() + range.end, true);
    }
    uint64_t last_end = 0;
    std::vector<bool> held(64);
    for (const RowRange& range : set.ranges()) {
      EXPECT_TRUE(last_end == 0 || range.begin > last_end) << "touching ranges must be joined";
      last_end = range.end;
      std::fill(held.begin() + range.begin, held.begin() + range.end, true);
    }
    EXPECT_EQ(held, rows);
  }
}

}  // namespace
}  // namespace maxsimd
