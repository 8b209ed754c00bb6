// What only the CUDA backend has: its memory, its pipeline, its errors.  What a score is, the tests
// of all backends say.
#include "kernels/cuda/cuda_scorer.h"

#include <cstring>
#include <thread>

#include "gtest/gtest.h"
#include <cuda_runtime.h>

#include "kernels/element_conversion.h"
#include "tests/testing/packing_scorer.h"
#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

class CudaScorerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto scorer = CudaScorer::Create(0);
    if (!scorer.ok()) GTEST_SKIP() << "no GPU here: " << scorer.status().message();
    scorer_ = *std::move(scorer);
  }
  std::shared_ptr<CudaScorer> scorer_;
};

TEST(CudaScorerCreateTest, ADeviceThatIsNotThereIsNamed) {
  const auto scorer = CudaScorer::Create(1000);
  EXPECT_EQ(scorer.status().code(), absl::StatusCode::kFailedPrecondition) << scorer.status();
  EXPECT_NE(scorer.status().message().find("no device"), std::string::npos) << scorer.status();
}

TEST_F(CudaScorerTest, SaysWhatItIs) {
  EXPECT_EQ(scorer_->backend(), "cuda");
  EXPECT_EQ(scorer_->devices().size(), 1u);
  EXPECT_GT(scorer_->multiply_adds_per_second(), 1e10);
}

TEST_F(CudaScorerTest, PitchesAreWhatTheCopiesWantAndAtMostDoubleARow) {
  for (const ElementType type : kAllElementTypes) {
    for (uint32_t dim = 1; dim <= 4096; ++dim) {
      const size_t row = dim * ElementBytes(type);
      const size_t pitch = scorer_->RowPitchBytes(type, dim);
      EXPECT_GE(pitch, row);
      EXPECT_LE(pitch, 2 * row);
      EXPECT_EQ(pitch % (row < 16 ? 4 : 16), 0u);
    }
  }
}

TEST_F(CudaScorerTest, PackedBuffersCanBeWrittenAndScored) {
  const auto buffer = scorer_->AllocatePackedBuffer(size_t{1} << 20);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  std::memset(buffer->data(), 0, buffer->size_bytes());
  TestGroup group({.element_type = ElementType::kFloat16,
                   .query_tokens = 5,
                   .dim = 64,
                   .lengths = {10, 100, 0}});
  QueryGroup view = group.View();
  std::memcpy(buffer->data() + 4096, view.rows, view.row_count * view.row_pitch_bytes);
  view.rows = buffer->data() + 4096;
  const auto timings = scorer_->Score(
      {absl::MakeConstSpan(buffer->data(), buffer->size_bytes()), absl::MakeSpan(&view, 1)});
  ASSERT_TRUE(timings.ok()) << timings.status();
  EXPECT_GT(timings->upload, absl::ZeroDuration());
  EXPECT_TRUE(AgreesWithReference(group));
}

TEST_F(CudaScorerTest, RowsOutsideThePackedBufferAreRefused) {
  TestGroup group({.element_type = ElementType::kFloat16, .dim = 8});
  QueryGroup view = group.View();
  const auto timings = scorer_->Score({{}, absl::MakeSpan(&view, 1)});
  EXPECT_EQ(timings.status().code(), absl::StatusCode::kInvalidArgument);
}

// More than 2^31 elements, and more than 2^32 bytes: a row at the end that 32 bits would misplace.
TEST_F(CudaScorerTest, RowsBeyondTwoToThe31ElementsAreFound) {
  constexpr uint32_t kDim = 128;
  constexpr uint64_t kRows = (uint64_t{1} << 31) / kDim + 1000;
  const size_t size = kRows * kDim * 2;
  const auto buffer = scorer_->AllocatePackedBuffer(size);
  if (!buffer.ok()) GTEST_SKIP() << "not enough memory: " << buffer.status().message();
  std::memset(buffer->data(), 0, size);
  TestGroup group(
      {.element_type = ElementType::kFloat16, .query_tokens = 3, .dim = kDim, .lengths = {500}});
  QueryGroup view = group.View();
  const size_t tail = 500 * kDim * 2;
  std::memcpy(buffer->data() + size - tail, view.rows, tail);
  std::vector<DocumentRows> documents = {{kRows - 500, 500}, {0, 500}};
  std::vector<DocumentScore> scores(2);
  view.rows = buffer->data();
  view.row_count = kRows;
  view.documents = documents;
  view.scores = absl::MakeSpan(scores);
  ASSERT_TRUE(
      scorer_->Score({absl::MakeConstSpan(buffer->data(), size), absl::MakeSpan(&view, 1)}).ok());
  group.View();
  group.scores = {scores[0]};
  EXPECT_TRUE(AgreesWithReference(group));
  EXPECT_EQ(scores[1].score, 0);
}

TEST_F(CudaScorerTest, BatchesInFlightDoNotMix) {
  constexpr int kCallers = 2 * CudaScorer::kSlots;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([this, caller] {
      PackingScorer scorer(scorer_);
      TestGroup group({.element_type = kAllElementTypes[caller % 3],
                       .query_tokens = 20u + 30 * caller,
                       .dim = 128,
                       .lengths = {1000, 3, 64, 2000},
                       .return_matches = true,
                       .seed = static_cast<uint64_t>(caller)});
      for (int repeat = 0; repeat < 5; ++repeat) {
        ScoreAlone(scorer, group);
        EXPECT_TRUE(AgreesWithReference(group));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(CudaScorerTest, AStickyErrorLosesTheDeviceForGood) {
  PackingScorer scorer(scorer_);
  TestGroup group({.lengths = {5}});
  ScoreAlone(scorer, group);
  QueryGroup view = group.View();
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&view, 1);
  scorer_->FailNextScoreForTest(cudaErrorIllegalAddress);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const absl::Status status = scorer.Score(batch).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_NE(status.message().find("cudaErrorIllegalAddress"), std::string::npos) << status;
  }
}

TEST_F(CudaScorerTest, AnotherPipelineOfTheDeviceGoesOn) {
  auto other = CudaScorer::Create(0);
  ASSERT_TRUE(other.ok()) << other.status();
  PackingScorer scorer(scorer_);
  PackingScorer second(std::shared_ptr<Scorer>(*std::move(other)));
  TestGroup group({.lengths = {5}});
  scorer_->FailNextScoreForTest(cudaErrorIllegalAddress);
  QueryGroup view = group.View();
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&view, 1);
  EXPECT_EQ(scorer.Score(batch).status().code(), absl::StatusCode::kUnavailable);
  ScoreAlone(second, group);
  EXPECT_TRUE(AgreesWithReference(group));
}

}  // namespace
}  // namespace maxsimd
