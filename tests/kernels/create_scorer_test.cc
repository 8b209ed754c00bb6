#include "kernels/create_scorer.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/cpu/isa.h"

namespace maxsimd {
namespace {

using ::testing::HasSubstr;

TEST(CreateScorersTest, CpuAndAutoGiveOneCpuScorer) {
  for (const char* backend : {"cpu", "auto"}) {
    auto scorers = CreateScorers({.backend = backend, .devices = {}, .threads = 2});
    ASSERT_TRUE(scorers.ok()) << scorers.status();
    ASSERT_EQ(scorers->size(), 1u);
    const Scorer& scorer = *scorers->front();
    if (scorer.backend() == "cuda") continue;  // Where there is a GPU, auto takes it.
    EXPECT_EQ(scorer.backend(), "cpu");
    EXPECT_EQ(scorer.concurrency(), 1);
    EXPECT_GT(scorer.multiply_adds_per_second(), 1e6);
    EXPECT_EQ(scorer.RowPitchBytes(ElementType::kFloat16, 37), 74u);
    ASSERT_EQ(scorer.devices().size(), 1u);
    EXPECT_THAT(scorer.devices()[0], HasSubstr(SupportedCpuKernels()[0]->isa));
    EXPECT_THAT(scorer.devices()[0], HasSubstr("2 threads"));
  }
}

TEST(CreateScorersTest, NamesWhatItRefuses) {
  const auto status = [](const ScorerOptions& options) { return CreateScorers(options).status(); };
  const absl::Status unknown = status({.backend = "tpu", .devices = {}, .threads = 0});
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("backend"));
  for (const int threads : {-1, 1025}) {
    const absl::Status refused = status({.backend = "cpu", .devices = {}, .threads = threads});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("threads"));
  }
}

TEST(CpuScorerTest, RefusesAnInstructionSetThatThereIsNot) {
  const auto scorer = CpuScorer::Create(1, "mmx");
  EXPECT_EQ(scorer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(scorer.status().message()), HasSubstr("mmx"));
}

TEST(CpuScorerTest, RefusesAGroupWhoseRowsAreOutsideTheBuffer) {
  const auto scorer = CpuScorer::Create(1);
  const float row[2] = {1, 2};
  const DocumentRows document{1, 1};
  DocumentScore score;
  QueryGroup group;
  group.query.tokens = 1;
  group.query.dim = 2;
  group.query.data = reinterpret_cast<const std::byte*>(row);
  group.rows = group.query.data;
  group.row_pitch_bytes = sizeof(row);
  group.row_count = 1;
  group.documents = absl::MakeConstSpan(&document, 1);
  group.scores = absl::MakeSpan(&score, 1);
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&group, 1);
  EXPECT_EQ((*scorer)->Score(batch).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuScorerTest, ScalarIsSupportedEverywhereAndLast) {
  ASSERT_FALSE(SupportedCpuKernels().empty());
  EXPECT_STREQ(SupportedCpuKernels().back()->isa, "scalar");
}

TEST(CpuScorerTest, PackedBuffersAreAsLargeAsAskedAndZero) {
  const auto scorer = CpuScorer::Create(1);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4097}, size_t{5} << 20}) {
    const auto buffer = (*scorer)->AllocatePackedBuffer(size);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(buffer->size_bytes(), size);
    if (size == 0) continue;
    EXPECT_EQ(buffer->data()[size - 1], std::byte{0});
    std::memset(buffer->data(), 1, size);
  }
}

TEST(CpuScorerTest, APackedBufferLargerThanAddressSpaceIsRefusedBySize) {
  const auto scorer = CpuScorer::Create(1);
  const auto buffer = (*scorer)->AllocatePackedBuffer(size_t{1} << 60);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()), HasSubstr("1152921504606846976"));
}

}  // namespace
}  // namespace maxsimd
