#include "server/rpc/call_progress.h"

#include "gtest/gtest.h"

namespace maxsimd {
namespace {

void Receive(CallProgress& progress, uint64_t documents, uint64_t scoreless = 0,
             bool queued = true) {
  progress.OnReadStarted();
  progress.OnMessage(documents, scoreless, queued);
}

TEST(CallProgressTest, ReadsOneMessageAtATime) {
  CallProgress progress(false);
  EXPECT_TRUE(progress.WantsRead());
  EXPECT_FALSE(progress.reading());
  progress.OnReadStarted();
  EXPECT_TRUE(progress.reading());
  EXPECT_FALSE(progress.WantsRead());
  progress.OnMessage(3, 0, true);
  EXPECT_FALSE(progress.reading());
  EXPECT_TRUE(progress.WantsRead());
}

TEST(CallProgressTest, ReadsOneMessageAheadOfTheOneThatIsCopied) {
  CallProgress progress(false);
  Receive(progress, 3);
  EXPECT_TRUE(progress.WantsRead());
  Receive(progress, 3);
  EXPECT_FALSE(progress.WantsRead());
  progress.OnCopied();
  EXPECT_TRUE(progress.WantsRead());
}

TEST(CallProgressTest, MessagesThatAreNotQueuedWaitForNoCopy) {
  CallProgress progress(false);
  for (int i = 0; i < 5; ++i) Receive(progress, 2, 2, false);
  EXPECT_TRUE(progress.WantsRead());
}

TEST(CallProgressTest, StopsReadingWhileMoreThanItsShareIsUnsent) {
  CallProgress progress(false);
  progress.OnUnsent(CallProgress::kMaxUnsentBytes);
  EXPECT_TRUE(progress.WantsRead());
  progress.OnUnsent(1);
  EXPECT_FALSE(progress.WantsRead());
  progress.OnSent(1);
  EXPECT_TRUE(progress.WantsRead());
}

TEST(CallProgressTest, ReadsNothingAfterTheEndOfTheInput) {
  CallProgress progress(false);
  Receive(progress, 1);
  progress.OnReadStarted();
  progress.OnInputDone();
  EXPECT_FALSE(progress.reading());
  EXPECT_FALSE(progress.WantsRead());
}

TEST(CallProgressTest, ASingleMessageIsAllTheInput) {
  CallProgress progress(true);
  Receive(progress, 2);
  EXPECT_FALSE(progress.WantsRead());
  EXPECT_FALSE(progress.complete());
  progress.OnScored(1);
  EXPECT_FALSE(progress.complete());
  progress.OnScored(1);
  EXPECT_TRUE(progress.complete());
}

TEST(CallProgressTest, AStreamIsCompleteOnlyAfterItsHalfClose) {
  CallProgress progress(false);
  Receive(progress, 2);
  progress.OnScored(2);
  EXPECT_FALSE(progress.complete());
  progress.OnReadStarted();
  progress.OnInputDone();
  EXPECT_TRUE(progress.complete());
}

TEST(CallProgressTest, AHalfCloseBeforeTheScoresCompletesNothing) {
  CallProgress progress(false);
  Receive(progress, 3, 1);
  progress.OnReadStarted();
  progress.OnInputDone();
  EXPECT_FALSE(progress.complete());
  progress.OnScored(2);
  EXPECT_TRUE(progress.complete());
}

TEST(CallProgressTest, AStreamWithoutAMessageIsNeverComplete) {
  CallProgress progress(false);
  EXPECT_FALSE(progress.started());
  progress.OnReadStarted();
  progress.OnInputDone();
  EXPECT_FALSE(progress.started());
  EXPECT_FALSE(progress.complete());
}

TEST(CallProgressTest, AMessageWithoutDocumentsIsCompleteAtOnce) {
  CallProgress progress(true);
  Receive(progress, 0, 0, false);
  EXPECT_TRUE(progress.started());
  EXPECT_TRUE(progress.complete());
}

TEST(CallProgressTest, CountsDocumentsOverAllMessages) {
  CallProgress progress(false);
  Receive(progress, uint64_t{1} << 32);
  EXPECT_EQ(progress.documents_received(), uint64_t{1} << 32);
  Receive(progress, 5);
  EXPECT_EQ(progress.documents_received(), (uint64_t{1} << 32) + 5);
}

}  // namespace
}  // namespace maxsimd
