#include "server/sizing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/testing/puppet_scorer.h"

namespace maxsimd {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(SizingTest, TheLargestUnitIsTheMessageWhereRowsAreNotPadded) {
  Limits limits;
  limits.max_message_bytes = 1'000'000;
  limits.max_stream_message_bytes = 1'000;
  EXPECT_EQ(LargestUnitBytes(limits, PuppetScorer()), 1'000'000u);
}

TEST(SizingTest, TheLargestUnitIsMadeOfTheRowsThatArePaddedMost) {
  Limits limits;
  limits.max_message_bytes = 1'000'000;
  limits.max_stream_message_bytes = 1'000;
  // Rows of one 2-byte element take 16 bytes each.
  EXPECT_EQ(LargestUnitBytes(limits, PuppetScorer(1, 16)), 500'000u * 16);
}

TEST(SizingTest, AStreamsMessageMayBeTheLarger) {
  Limits limits;
  limits.max_message_bytes = 1'000;
  limits.max_stream_message_bytes = 4'000;
  EXPECT_EQ(LargestUnitBytes(limits, PuppetScorer()), 4'000u);
}

TEST(SizingTest, NoLegalRowsOutgrowTheLargestUnit) {
  Limits limits;
  limits.max_message_bytes = 12'345;
  limits.max_stream_message_bytes = 1;
  limits.max_dim = 100;
  const PuppetScorer scorer(1, 48);
  const uint64_t largest = LargestUnitBytes(limits, scorer);
  bool reached = false;
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    for (uint32_t dim = 1; dim <= limits.max_dim; ++dim) {
      const uint64_t rows = limits.max_message_bytes / (dim * ElementBytes(type));
      EXPECT_LE(rows * scorer.RowPitchBytes(type, dim), largest);
      reached |= rows * scorer.RowPitchBytes(type, dim) == largest;
    }
  }
  EXPECT_TRUE(reached);
}

TEST(SizingTest, ABufferHoldsTheLargestUnitUnlessTheOptionSaysMore) {
  Options options;
  options.max_message_bytes = kMiB;
  const Limits limits = LimitsFor(options);
  const PuppetScorer scorer(1, 16);
  const uint64_t largest = LargestUnitBytes(limits, scorer);
  EXPECT_EQ(BatchLimitsFor(options, limits, scorer)->buffer_bytes, largest);
  options.packed_buffer_bytes = largest;
  EXPECT_EQ(BatchLimitsFor(options, limits, scorer)->buffer_bytes, largest);
  options.packed_buffer_bytes = largest + 1;
  EXPECT_EQ(BatchLimitsFor(options, limits, scorer)->buffer_bytes, largest + 1);
  options.packed_buffer_bytes = largest - 1;
  const absl::Status refused = BatchLimitsFor(options, limits, scorer).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), testing::HasSubstr("packed-buffer-bytes"));
}

TEST(SizingTest, BatchesFollowTheOptionsAndTheDevice) {
  Options options;
  options.packed_buffers = 5;
  options.max_batch_tokens = 77;
  options.max_batch_delay = absl::Milliseconds(3);
  const PuppetScorer scorer;
  const absl::StatusOr<BatchLimits> limits = BatchLimitsFor(options, LimitsFor(options), scorer);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->buffers, 5);
  EXPECT_EQ(limits->max_tokens, 77u);
  EXPECT_EQ(limits->max_delay, absl::Milliseconds(3));
  // Some of the device's time, and less than a tenth of a second.
  EXPECT_GT(limits->max_multiply_adds, 0u);
  EXPECT_LT(limits->max_multiply_adds, scorer.multiply_adds_per_second() / 10);
}

TEST(SizingTest, NoMessageOfAStreamIsLargerThanAMessage) {
  Options options;
  EXPECT_EQ(LimitsFor(options).max_message_bytes, 64 * kMiB);
  EXPECT_EQ(LimitsFor(options).max_stream_message_bytes, 4 * kMiB);
  options.max_message_bytes = kMiB;
  EXPECT_EQ(LimitsFor(options).max_message_bytes, kMiB);
  EXPECT_EQ(LimitsFor(options).max_stream_message_bytes, kMiB);
}

TEST(SizingTest, TicksAQuarterOfTheTimeOutWithinBounds) {
  Options options;
  options.stream_idle_timeout = absl::Milliseconds(400);
  EXPECT_EQ(TickFor(options), absl::Milliseconds(100));
  options.stream_idle_timeout = absl::Milliseconds(1);
  EXPECT_EQ(TickFor(options), absl::Milliseconds(1));
  options.stream_idle_timeout = absl::Hours(24);
  EXPECT_EQ(TickFor(options), absl::Milliseconds(200));
}

TEST(CopyThreadsForTest, AreAQuarterOfTheProcessorsAndEightAtMost) {
  EXPECT_EQ(CopyThreadsFor(0), 0);  // Unknown.
  EXPECT_EQ(CopyThreadsFor(2), 0);
  EXPECT_EQ(CopyThreadsFor(16), 4);
  EXPECT_EQ(CopyThreadsFor(192), 8);
}

}  // namespace
}  // namespace maxsimd
