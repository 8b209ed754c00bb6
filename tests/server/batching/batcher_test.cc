// The batcher's threads while every device works: what starts when, and where the scores go.
#include "server/batching/batcher.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/testing/fake_recipient.h"
#include "tests/testing/fake_work.h"
#include "tests/testing/puppet_scorer.h"

namespace maxsimd {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

BatchLimits SmallLimits() {
  BatchLimits limits;
  limits.buffer_bytes = 100'000;
  return limits;
}

std::unique_ptr<Batcher> NewBatcher(const BatchLimits& limits, std::vector<Scorer*> scorers) {
  return *Batcher::Create(limits, std::move(scorers), [](int, const absl::Status&) {});
}

class BatcherTest : public testing::Test {
 protected:
  ~BatcherTest() override { scorer_.ReleaseAll(); }  // Else the batcher would wait for ever.

  FakeMessage Message(const std::shared_ptr<FakeRecipient>& recipient,
                      const std::vector<uint32_t>& lengths = {2, 3}, uint64_t first_index = 0) {
    return RandomMessage(random_, query_, recipient, lengths, first_index);
  }
  // Submits to a lane of its own.
  Batcher::LaneId Submit(const FakeMessage& message) {
    const Batcher::LaneId lane = batcher_->AddLane();
    batcher_->Submit(lane, message.work);
    return lane;
  }

  std::mt19937 random_{11};
  const std::shared_ptr<Query> query_ = RandomQuery(random_, ElementType::kFloat32, 3, 4);
  PuppetScorer scorer_;
  std::unique_ptr<Batcher> batcher_ = NewBatcher(SmallLimits(), {&scorer_});
};

void ExpectScores(const FakeRecipient& recipient, const FakeMessage& message) {
  const std::map<uint64_t, FakeRecipient::Result> results = recipient.results();
  for (size_t i = 0; i < message.expected.size(); ++i) {
    const auto found = results.find(message.work->first_index + i);
    ASSERT_NE(found, results.end()) << i;
    EXPECT_EQ(found->second.score.score, static_cast<float>(message.expected[i].score)) << i;
  }
}

TEST_F(BatcherTest, ScoresLoneWorkAtOnce) {
  scorer_.ReleaseAll();
  const auto recipient = std::make_shared<FakeRecipient>();
  const FakeMessage message = Message(recipient);
  Submit(message);
  recipient->WaitForScores(2);
  ExpectScores(*recipient, message);
  EXPECT_EQ(recipient->copies(), 1u);
  EXPECT_EQ(recipient->batches(), 1u);
  EXPECT_EQ(recipient->result_bytes(), 2 * ResultBytes(*query_, ""));
  EXPECT_THAT(recipient->failures(), IsEmpty());
}

TEST_F(BatcherTest, ScoresShortLoneWorkBeforeSubmitReturns) {
  PuppetScorer fast(1, 1, 1e9);
  fast.ReleaseAll();
  const std::unique_ptr<Batcher> batcher = NewBatcher(SmallLimits(), {&fast});
  const auto recipient = std::make_shared<FakeRecipient>();
  for (int call = 0; call < 3; ++call) {
    batcher->Submit(batcher->AddLane(), Message(recipient).work);
    EXPECT_EQ(recipient->scores(), 2u * (call + 1));
  }
}

TEST_F(BatcherTest, LeavesShortWorkToAWorkerWhileAnotherSubmitterScores) {
  PuppetScorer fast(2, 1, 1e9);
  const std::unique_ptr<Batcher> batcher = NewBatcher(SmallLimits(), {&fast});
  const auto first = std::make_shared<FakeRecipient>();
  const auto second = std::make_shared<FakeRecipient>();
  const FakeMessage message = Message(first);
  std::thread submitter([&] { batcher->Submit(batcher->AddLane(), message.work); });
  fast.WaitForCalls(1);
  batcher->Submit(batcher->AddLane(), Message(second).work);  // Returns, though nothing is scored.
  fast.WaitForCalls(2);
  EXPECT_EQ(second->scores(), 0u);
  fast.ReleaseAll();
  submitter.join();
  second->WaitForScores(2);
}

TEST_F(BatcherTest, PutsWhatComesWhileTheDeviceIsBusyIntoOneBatch) {
  const auto first = std::make_shared<FakeRecipient>();
  const auto second = std::make_shared<FakeRecipient>();
  const auto third = std::make_shared<FakeRecipient>();
  Submit(Message(first));
  scorer_.WaitForCalls(1);
  Submit(Message(second));
  Submit(Message(third));
  second->WaitForCopies(1);  // It is copied while the device works.
  third->WaitForCopies(1);
  scorer_.ReleaseAll();
  second->WaitForScores(2);
  third->WaitForScores(2);
  const std::vector<PuppetScorer::Call> calls = scorer_.calls();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[1].documents, 4u);
  EXPECT_EQ(calls[1].groups, 1u);
  EXPECT_EQ(calls[1].packed_bytes, 10u * 4 * sizeof(float));
}

TEST_F(BatcherTest, StartsAFullBatchWhileWhatClosedItIsStillBeingCopied) {
  BatchLimits limits = SmallLimits();
  limits.max_tokens = 5;
  limits.max_delay = absl::Hours(1);
  batcher_ = NewBatcher(limits, {&scorer_});
  scorer_.ReleaseAll();
  const auto first = std::make_shared<FakeRecipient>();
  Submit(Message(first));
  absl::Notification copying;
  absl::Notification go_on;
  const auto second = std::make_shared<FakeRecipient>([&] {
    copying.Notify();
    go_on.WaitForNotification();
  });
  const FakeMessage closing = Message(second);
  std::thread submitter([&] { Submit(closing); });
  copying.WaitForNotification();
  first->WaitForScores(2);
  EXPECT_EQ(second->scores(), 0u);
  go_on.Notify();
  submitter.join();
}

TEST_F(BatcherTest, CopiesEachByteOnce) {
  scorer_.ReleaseAll();
  size_t bytes = 0;
  std::vector<std::shared_ptr<FakeRecipient>> recipients;
  for (int i = 0; i < 50; ++i) {
    recipients.push_back(std::make_shared<FakeRecipient>());
    const FakeMessage message = Message(recipients.back(), {1, 50, 7, 300, 2});
    bytes += message.data_bytes;
    Submit(message);
  }
  for (const auto& recipient : recipients) recipient->WaitForScores(5);
  EXPECT_EQ(batcher_->counters().embedding_bytes_copied, bytes);
  EXPECT_EQ(batcher_->counters().documents, 250u);
}

TEST_F(BatcherTest, ThreadsThatShareTheCopyingCopyEachByteOnce) {
  scorer_.ReleaseAll();
  BatchLimits limits = SmallLimits();
  limits.copy_threads = 3;
  limits.copy_piece_bytes = 64;
  const std::unique_ptr<Batcher> batcher = NewBatcher(limits, {&scorer_});
  size_t bytes = 0;
  std::vector<std::pair<std::shared_ptr<FakeRecipient>, FakeMessage>> calls;
  for (int i = 0; i < 50; ++i) {
    auto recipient = std::make_shared<FakeRecipient>();
    FakeMessage message = Message(recipient, {1, 50, 7, 300, 2});
    bytes += message.data_bytes;
    batcher->Submit(batcher->AddLane(), message.work);
    calls.emplace_back(std::move(recipient), std::move(message));
  }
  for (const auto& [recipient, message] : calls) {
    recipient->WaitForScores(5);
    ExpectScores(*recipient, message);
    EXPECT_EQ(recipient->copies(), 1u);
  }
  EXPECT_EQ(batcher->counters().embedding_bytes_copied, bytes);
}

TEST_F(BatcherTest, CopiesAndScoresNothingForACallThatIsGone) {
  const auto first = std::make_shared<FakeRecipient>();
  const FakeMessage message = Message(first);
  Submit(message);
  scorer_.WaitForCalls(1);
  const auto gone = std::make_shared<FakeRecipient>();
  gone->Go();
  Submit(Message(gone));
  const auto last = std::make_shared<FakeRecipient>();
  Submit(Message(last));
  scorer_.ReleaseAll();
  last->WaitForScores(2);
  EXPECT_EQ(gone->scores(), 0u);
  EXPECT_EQ(gone->copies(), 1u);
  EXPECT_EQ(scorer_.calls()[1].documents, 2u);
  EXPECT_EQ(batcher_->counters().embedding_bytes_copied, 2 * message.data_bytes);
}

TEST_F(BatcherTest, FreesTheMessageOnceItIsCopied) {
  const auto busy = std::make_shared<FakeRecipient>();
  Submit(Message(busy));
  scorer_.WaitForCalls(1);
  const auto recipient = std::make_shared<FakeRecipient>();
  const FakeMessage message = Message(recipient);
  const std::weak_ptr<void> owner = message.work->message_owner;
  ASSERT_FALSE(owner.expired());
  Submit(message);
  recipient->WaitForCopies(1);
  EXPECT_TRUE(owner.expired());
  EXPECT_EQ(recipient->scores(), 0u);
}

TEST_F(BatcherTest, DropsWhatWaitsInALaneThatIsRemoved) {
  BatchLimits limits = SmallLimits();
  limits.buffers = 2;
  limits.max_tokens = 5;
  batcher_ = NewBatcher(limits, {&scorer_});
  const auto scoring = std::make_shared<FakeRecipient>();
  const auto copied = std::make_shared<FakeRecipient>();
  const auto waiting = std::make_shared<FakeRecipient>();
  const auto after = std::make_shared<FakeRecipient>();
  const Batcher::LaneId scoring_lane = Submit(Message(scoring));
  scorer_.WaitForCalls(1);
  const Batcher::LaneId copied_lane = Submit(Message(copied));
  copied->WaitForCopies(1);
  FakeMessage dropped = Message(waiting);  // Both buffers are in use.
  std::weak_ptr<Work> dropped_work = dropped.work;
  const Batcher::LaneId waiting_lane = Submit(dropped);
  dropped.work.reset();
  Submit(Message(after));
  // As a call that ends does it: gone first, so that whatever is in flight is not for it.
  for (const auto& recipient : {scoring, copied, waiting}) recipient->Go();
  for (const Batcher::LaneId lane : {scoring_lane, copied_lane, waiting_lane}) {
    batcher_->RemoveLane(lane);
  }
  EXPECT_TRUE(dropped_work.expired());
  scorer_.ReleaseAll();
  after->WaitForScores(2);
  EXPECT_EQ(copied->scores(), 0u);
  EXPECT_EQ(waiting->scores(), 0u);
  EXPECT_EQ(waiting->copies(), 0u);
  for (const auto& recipient : {scoring, copied, waiting, after}) {
    EXPECT_THAT(recipient->failures(), IsEmpty());
  }
}

TEST_F(BatcherTest, DropsWorkForALaneThatIsGoneWithoutTheLock) {
  scorer_.ReleaseAll();
  const Batcher::LaneId lane = batcher_->AddLane();
  batcher_->RemoveLane(lane);
  const auto recipient = std::make_shared<FakeRecipient>();
  FakeMessage message = Message(recipient);
  bool freed = false;
  // As an admission would: freeing what a message holds calls other calls, and they the batcher.
  message.work->owner = std::shared_ptr<void>(nullptr, [&](void*) {
    batcher_->counters();
    freed = true;
  });
  batcher_->Submit(lane, std::move(message.work));
  EXPECT_TRUE(freed);
  EXPECT_EQ(recipient->copies(), 0u);
}

TEST_F(BatcherTest, GoesOnWithALaneWhoseResultsAreGivenBack) {
  BatchLimits limits = SmallLimits();
  limits.max_lane_result_bytes = ResultBytes(*query_, "");
  batcher_ = NewBatcher(limits, {&scorer_});
  scorer_.ReleaseAll();
  const auto recipient = std::make_shared<FakeRecipient>();
  const FakeMessage message = RandomMessage(
      random_, query_, recipient, std::vector<uint32_t>{2, 3, 4}, 0, {.max_multiply_adds = 1});
  const Batcher::LaneId lane = Submit(message);
  for (size_t scored = 1; scored <= 3; ++scored) {
    recipient->WaitForScores(scored);
    EXPECT_EQ(recipient->scores(), scored);
    EXPECT_EQ(recipient->copies(), scored == 3 ? 1u : 0u);
    batcher_->ReleaseResults(lane, limits.max_lane_result_bytes);
  }
  ExpectScores(*recipient, message);
}

TEST_F(BatcherTest, RunsAsManyBatchesAtATimeAsTheScorersTake) {
  PuppetScorer two(2);
  PuppetScorer one(1);
  BatchLimits limits = SmallLimits();
  limits.buffers = 4;
  batcher_ = NewBatcher(limits, {&two, &one});
  std::vector<std::shared_ptr<FakeRecipient>> recipients;
  for (size_t i = 0; i < 3; ++i) {
    recipients.push_back(std::make_shared<FakeRecipient>());
    Submit(Message(recipients.back()));
    while (two.calls().size() + one.calls().size() <= i) std::this_thread::yield();
  }
  EXPECT_THAT(two.calls(), SizeIs(2));
  EXPECT_THAT(one.calls(), SizeIs(1));
  two.ReleaseAll();
  one.ReleaseAll();
  for (const auto& recipient : recipients) recipient->WaitForScores(2);
  batcher_.reset();
}

TEST_F(BatcherTest, DropsWhatWaitsWhenItEnds) {
  BatchLimits limits = SmallLimits();
  limits.buffers = 2;
  limits.max_tokens = 5;
  limits.max_delay = absl::Hours(1);
  batcher_ = NewBatcher(limits, {&scorer_});
  std::vector<std::weak_ptr<FakeRecipient>> recipients;
  for (int i = 0; i < 4; ++i) {
    const auto recipient = std::make_shared<FakeRecipient>();
    recipients.push_back(recipient);
    Submit(Message(recipient));
  }
  scorer_.ReleaseAll();
  batcher_.reset();
  for (const auto& recipient : recipients) EXPECT_TRUE(recipient.expired());
}

// Several calls of several messages each, with shared and different queries, in buffers so small
// that messages are split over batches.
TEST_F(BatcherTest, BringsEveryScoreToItsDocumentAcrossLanes) {
  BatchLimits limits = SmallLimits();
  limits.buffer_bytes = 4'096;
  limits.max_tokens = 60;
  limits.max_multiply_adds = 2'000;
  PuppetScorer scorer(2, 16);
  scorer.ReleaseAll();
  const std::unique_ptr<Batcher> batcher = NewBatcher(limits, {&scorer});
  std::vector<std::shared_ptr<Query>> queries;
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    queries.push_back(RandomQuery(random_, type, 3, 5));
    queries.push_back(RandomQuery(random_, type, 2, 8));
    queries.back()->return_matches = true;
  }
  struct Call {
    std::shared_ptr<FakeRecipient> recipient = std::make_shared<FakeRecipient>();
    std::vector<FakeMessage> messages;
    size_t documents = 0;
  };
  std::vector<Call> calls(30);
  size_t bytes = 0;
  for (Call& call : calls) {
    const std::shared_ptr<Query>& query = queries[random_() % queries.size()];
    const Batcher::LaneId lane = batcher->AddLane();
    for (size_t m = 0; m < 3; ++m) {
      std::vector<uint32_t> lengths(1 + random_() % 20);
      for (uint32_t& length : lengths) length = 1 + random_() % 12;
      call.messages.push_back(RandomMessage(random_, query, call.recipient, lengths, call.documents,
                                            {.gather_bytes = 100, .max_multiply_adds = 200}));
      call.documents += lengths.size();
      bytes += call.messages.back().data_bytes;
      batcher->Submit(lane, call.messages.back().work);
    }
  }
  for (const Call& call : calls) {
    call.recipient->WaitForScores(call.documents);
    EXPECT_EQ(call.recipient->scores(), call.documents);
    EXPECT_EQ(call.recipient->copies(), call.messages.size());
    EXPECT_THAT(call.recipient->failures(), IsEmpty());
    for (const FakeMessage& message : call.messages) ExpectScores(*call.recipient, message);
  }
  EXPECT_EQ(batcher->counters().embedding_bytes_copied, bytes);
}

}  // namespace
}  // namespace maxsimd
