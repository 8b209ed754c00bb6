// Scorers that fail, and devices that are lost: every call ends, and nobody pays for another's
// batch.
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/batching/batcher.h"
#include "tests/testing/fake_recipient.h"
#include "tests/testing/fake_work.h"
#include "tests/testing/puppet_scorer.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class BatcherFailureTest : public testing::Test {
 protected:
  BatcherFailureTest() { Create({&scorer_}, Limits()); }
  ~BatcherFailureTest() override {
    scorer_.ReleaseAll();
    second_.ReleaseAll();
  }

  // A message of {2, 3} tokens fills a batch.
  static BatchLimits Limits() {
    BatchLimits limits;
    limits.buffers = 2;
    limits.buffer_bytes = 100'000;
    limits.max_tokens = 5;
    return limits;
  }
  void Create(std::vector<Scorer*> scorers, const BatchLimits& limits) {
    batcher_ = *Batcher::Create(limits, std::move(scorers),
                                [this](int scorer, const absl::Status& status) {
                                  EXPECT_TRUE(absl::IsUnavailable(status));
                                  MutexLock lock(&mutex_);
                                  lost_.push_back(scorer);
                                });
  }
  std::shared_ptr<FakeRecipient> Submit() {
    auto recipient = std::make_shared<FakeRecipient>();
    SubmitFor(recipient);
    return recipient;
  }
  void SubmitFor(const std::shared_ptr<FakeRecipient>& recipient) {
    batcher_->Submit(batcher_->AddLane(), Message(recipient));
  }
  std::shared_ptr<Work> Message(const std::shared_ptr<FakeRecipient>& recipient) {
    return RandomMessage(random_, query_, recipient, std::vector<uint32_t>{2, 3}).work;
  }
  std::vector<int> lost() {
    MutexLock lock(&mutex_);
    return lost_;
  }

  std::mt19937 random_{13};
  const std::shared_ptr<Query> query_ = RandomQuery(random_, ElementType::kFloat32, 3, 4);
  Mutex mutex_;
  std::vector<int> lost_ ABSL_GUARDED_BY(mutex_);
  PuppetScorer scorer_;
  PuppetScorer second_;
  std::unique_ptr<Batcher> batcher_;
};

TEST_F(BatcherFailureTest, AnErrorFailsTheCallsOfItsBatchOnly) {
  const auto first = Submit();
  scorer_.WaitForCalls(1);
  const auto second = Submit();
  scorer_.Release(absl::InternalError("launch failed"));
  scorer_.Release();
  first->WaitForFailures(1);
  second->WaitForScores(2);
  EXPECT_THAT(first->failures(), ElementsAre(absl::InternalError("launch failed")));
  EXPECT_EQ(first->scores(), 0u);
  EXPECT_THAT(second->failures(), IsEmpty());
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(BatcherFailureTest, ALostDeviceFailsWhatRidesWhatWaitsAndWhatComes) {
  const absl::Status gone = absl::UnavailableError("the device fell off the bus");
  std::vector<std::shared_ptr<FakeRecipient>> recipients = {Submit()};
  scorer_.WaitForCalls(1);
  recipients.push_back(Submit());  // Copied to the other buffer.
  recipients.push_back(Submit());  // Waits.
  scorer_.Release(gone);
  for (const auto& recipient : recipients) {
    recipient->WaitForFailures(1);
    EXPECT_EQ(recipient->failures()[0], gone);
    EXPECT_EQ(recipient->scores(), 0u);
  }
  EXPECT_THAT(lost(), ElementsAre(0));
  const auto late = Submit();
  EXPECT_THAT(late->failures(), ElementsAre(gone));  // Before Submit returns.
  EXPECT_EQ(late->copies(), 0u);
  EXPECT_THAT(scorer_.calls(), SizeIs(1));
}

TEST_F(BatcherFailureTest, ALostDeviceFailsAnOpenBatchThatIsNotDue) {
  BatchLimits limits = Limits();
  limits.max_delay = absl::Hours(1);
  Create({&scorer_}, limits);
  const auto first = Submit();
  const auto second = Submit();  // Closes the first one's batch, and waits in the open one.
  second->WaitForCopies(1);
  scorer_.Release(absl::UnavailableError("lost"));
  first->WaitForFailures(1);
  second->WaitForFailures(1);
}

TEST_F(BatcherFailureTest, ALostDeviceFailsABatchThatIsBeingCopied) {
  const auto first = Submit();
  scorer_.WaitForCalls(1);
  absl::Notification copying;
  absl::Notification go_on;
  const auto second = std::make_shared<FakeRecipient>([&] {
    copying.Notify();
    go_on.WaitForNotification();
  });
  std::thread submitter([&] { SubmitFor(second); });
  copying.WaitForNotification();
  scorer_.Release(absl::UnavailableError("lost"));
  first->WaitForFailures(1);
  EXPECT_THAT(second->failures(), IsEmpty());
  go_on.Notify();
  submitter.join();
  second->WaitForFailures(1);
}

TEST_F(BatcherFailureTest, TheOtherDeviceServesOn) {
  BatchLimits limits = Limits();
  limits.buffers = 3;
  Create({&scorer_, &second_}, limits);
  // The last scorer is the first to be given a batch.
  const auto on_second = Submit();
  second_.WaitForCalls(1);
  const auto on_first = Submit();
  scorer_.WaitForCalls(1);
  second_.Release(absl::UnavailableError("lost"));
  on_second->WaitForFailures(1);
  EXPECT_THAT(lost(), ElementsAre(1));
  scorer_.ReleaseAll();
  on_first->WaitForScores(2);
  for (int i = 0; i < 5; ++i) Submit()->WaitForScores(2);
  EXPECT_THAT(second_.calls(), SizeIs(1));
}

TEST_F(BatcherFailureTest, WorkFailsOnceTheOtherDeviceIsLostToo) {
  BatchLimits limits = Limits();
  limits.buffers = 3;
  Create({&scorer_, &second_}, limits);
  for (PuppetScorer* const scorer : {&scorer_, &second_}) {
    scorer->Release(absl::UnavailableError("lost"));
  }
  Submit()->WaitForFailures(1);
  Submit()->WaitForFailures(1);
  EXPECT_THAT(lost(), testing::UnorderedElementsAre(0, 1));
  EXPECT_THAT(Submit()->failures(), SizeIs(1));
}

TEST_F(BatcherFailureTest, ADeviceThatIsLostInTwoBatchesIsReportedOnce) {
  PuppetScorer two(2);
  BatchLimits limits = Limits();
  limits.buffers = 3;
  Create({&two}, limits);
  const auto first = Submit();
  two.WaitForCalls(1);
  const auto second = Submit();
  two.WaitForCalls(2);
  two.Release(absl::UnavailableError("lost"));
  two.Release(absl::UnavailableError("lost"));
  first->WaitForFailures(1);
  second->WaitForFailures(1);
  EXPECT_THAT(lost(), ElementsAre(0));
  batcher_.reset();
}

TEST_F(BatcherFailureTest, EndsWhileNoDeviceIsLeft) {
  scorer_.Release(absl::UnavailableError("lost"));
  Submit()->WaitForFailures(1);
  batcher_.reset();  // Must not hang.
  EXPECT_THAT(lost(), ElementsAre(0));
}

}  // namespace
}  // namespace maxsimd
