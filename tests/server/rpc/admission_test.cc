#include "server/rpc/admission.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace maxsimd {
namespace {

using testing::ElementsAre;

AdmissionLimits HundredBytes() {
  return {.max_calls = 2, .max_bytes = 100, .max_multiply_adds = 1000};
}

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { holds_.reserve(16); }
  ~AdmissionTest() override { ending_ = true; }

  // Reserves as number `number`; what is granted is kept in holds_, its number in granted_.
  Admission::WaitId Reserve(int number, uint64_t bytes) {
    return admission_.Reserve(bytes, [this, number](Admission::Hold hold) {
      if (ending_) return;  // holds_ is being destroyed, which lets others through.
      granted_.push_back(number);
      holds_.push_back(std::move(hold));
    });
  }

  Admission admission_{HundredBytes()};
  bool ending_ = false;
  std::vector<int> granted_;
  std::vector<Admission::Hold> holds_;
};

TEST_F(AdmissionTest, AdmitsCallsUpToTheLimit) {
  EXPECT_TRUE(admission_.EnterCall());
  EXPECT_TRUE(admission_.EnterCall());
  EXPECT_FALSE(admission_.EnterCall());
  EXPECT_EQ(admission_.usage().calls, 2u);  // A refused call holds no place.
  admission_.LeaveCall();
  EXPECT_TRUE(admission_.EnterCall());
}

TEST_F(AdmissionTest, GrantsUpToTheLastByteAtOnce) {
  Reserve(1, 60);
  Reserve(2, 40);
  EXPECT_THAT(granted_, ElementsAre(1, 2));
  EXPECT_EQ(admission_.usage().bytes, 100u);
  Reserve(3, 1);
  EXPECT_THAT(granted_, ElementsAre(1, 2));
  EXPECT_EQ(admission_.usage().waiting, 1u);
  holds_[1].Resize(39);
  EXPECT_THAT(granted_, ElementsAre(1, 2, 3));
  EXPECT_EQ(admission_.usage().bytes, 100u);
  EXPECT_EQ(admission_.usage().waiting, 0u);
}

TEST_F(AdmissionTest, GrantsFirstComeFirstServed) {
  Reserve(1, 100);
  Reserve(2, 60);
  Reserve(3, 10);  // Would fit sooner, but must not starve the second.
  holds_[0].Resize(50);
  EXPECT_THAT(granted_, ElementsAre(1));
  holds_[0].Resize(40);
  EXPECT_THAT(granted_, ElementsAre(1, 2));
  holds_[0].Reset();
  EXPECT_THAT(granted_, ElementsAre(1, 2, 3));
}

TEST_F(AdmissionTest, GrantsAllThatFitByOneRelease) {
  Reserve(1, 100);
  for (int number = 2; number <= 5; ++number) Reserve(number, 30);
  holds_[0].Reset();
  EXPECT_THAT(granted_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(admission_.usage().bytes, 90u);
}

TEST_F(AdmissionTest, CancelledWaitsAreNeverGranted) {
  Reserve(1, 100);
  const Admission::WaitId wait = Reserve(2, 60);
  EXPECT_TRUE(admission_.CancelWait(wait));
  EXPECT_FALSE(admission_.CancelWait(wait));
  holds_[0].Reset();
  EXPECT_THAT(granted_, ElementsAre(1));
  EXPECT_EQ(admission_.usage().bytes, 0u);
}

TEST_F(AdmissionTest, ACancelledWaitLetsTheOneBehindItThrough) {
  Reserve(1, 50);
  const Admission::WaitId wait = Reserve(2, 60);
  Reserve(3, 50);
  EXPECT_THAT(granted_, ElementsAre(1));
  EXPECT_TRUE(admission_.CancelWait(wait));
  EXPECT_THAT(granted_, ElementsAre(1, 3));
}

TEST_F(AdmissionTest, CancellingWhatWasGrantedTakesNothingBack) {
  const Admission::WaitId wait = Reserve(1, 60);
  EXPECT_FALSE(admission_.CancelWait(wait));
  EXPECT_EQ(admission_.usage().bytes, 60u);
}

TEST_F(AdmissionTest, CancellingDestroysTheGrantWithoutTheLock) {
  Reserve(1, 100);
  // A grant owns its call, whose end may come back here.
  std::weak_ptr<void> watched;
  Admission::WaitId wait = 0;
  {
    std::shared_ptr<void> owned(nullptr, [this](void*) { admission_.usage(); });
    watched = owned;
    wait = admission_.Reserve(10, [owned](Admission::Hold) {});
  }
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(admission_.CancelWait(wait));
  EXPECT_TRUE(watched.expired());
}

TEST_F(AdmissionTest, HoldNowNeverWaitsAndMayExceedTheBudget) {
  Reserve(1, 100);
  Admission::Hold extra = admission_.HoldNow(50, 7);
  EXPECT_EQ(extra.bytes(), 50u);
  EXPECT_EQ(admission_.usage().bytes, 150u);
  EXPECT_EQ(admission_.usage().multiply_adds, 7u);
  Reserve(2, 1);
  holds_[0].Resize(51);  // 101 in all.
  EXPECT_THAT(granted_, ElementsAre(1));
  extra.Reset();
  EXPECT_THAT(granted_, ElementsAre(1, 2));
  EXPECT_EQ(admission_.usage().multiply_adds, 0u);
}

TEST_F(AdmissionTest, GrantsNoReadWhileTooManyMultiplyAddsWait) {
  std::optional<Admission::Hold> full = admission_.HoldNow(0, 1000);
  Reserve(1, 1);
  EXPECT_THAT(granted_, ElementsAre(1));
  Admission::Hold over = admission_.HoldNow(0, 1);
  Reserve(2, 1);
  EXPECT_THAT(granted_, ElementsAre(1));
  full.reset();
  EXPECT_THAT(granted_, ElementsAre(1, 2));
}

TEST_F(AdmissionTest, HoldsMoveWithoutCountingTwice) {
  Admission::Hold a = admission_.HoldNow(10, 1);
  Admission::Hold b = std::move(a);
  EXPECT_EQ(admission_.usage().bytes, 10u);
  Admission::Hold c = admission_.HoldNow(20, 2);
  c = std::move(b);  // Gives its own 20 back.
  EXPECT_EQ(admission_.usage().bytes, 10u);
  EXPECT_EQ(admission_.usage().multiply_adds, 1u);
  Admission::Hold& same = c;
  c = std::move(same);
  EXPECT_EQ(admission_.usage().bytes, 10u);
  c.Reset();
  c.Reset();
  EXPECT_EQ(admission_.usage().bytes, 0u);
  c.Resize(5);  // An empty hold holds nothing.
  EXPECT_EQ(admission_.usage().bytes, 0u);
}

TEST_F(AdmissionTest, AGrantMayReserveAndReleaseAgain) {
  int depth = 0;
  std::function<void(Admission::Hold)> again = [&](Admission::Hold hold) {
    hold.Reset();
    if (++depth < 10) admission_.Reserve(100, again);
  };
  Reserve(1, 100);
  admission_.Reserve(100, again);
  holds_.clear();
  EXPECT_EQ(depth, 10);
  EXPECT_EQ(admission_.usage().bytes, 0u);
  EXPECT_EQ(admission_.usage().waiting, 0u);
}

TEST(AdmissionStressTest, NeverExceedsTheBudgetAndForgetsNobody) {
  constexpr int kThreads = 4;
  constexpr int kReserves = 500;  // A release grants the next within itself: not too deep.
  Admission admission(HundredBytes());
  std::atomic<uint64_t> held{0};
  std::atomic<int> ended{0};  // Granted, or cancelled.
  const auto reserve_and_release = [&](uint32_t seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kReserves; ++i) {
      const uint64_t bytes = 1 + random() % 100;
      const Admission::WaitId wait = admission.Reserve(bytes, [&, bytes](Admission::Hold hold) {
        EXPECT_LE(held += bytes, 100u);
        held -= bytes;
        hold.Reset();
        ++ended;
      });
      if (random() % 4 == 0 && admission.CancelWait(wait)) ++ended;
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < kThreads; ++seed) threads.emplace_back(reserve_and_release, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kThreads * kReserves);
  EXPECT_EQ(admission.usage().bytes, 0u);
  EXPECT_EQ(admission.usage().waiting, 0u);
}

}  // namespace
}  // namespace maxsimd
