// Which documents share a query group, and that every score comes back to its document.
#include "server/batching/query_groups.h"

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "kernels/reference/reference_scorer.h"
#include "tests/testing/fake_recipient.h"
#include "tests/testing/fake_work.h"
#include "tests/testing/puppet_scorer.h"

namespace maxsimd {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr size_t kBufferBytes = 100'000;

// A batch of whole messages, packed and copied as the Batcher does it.
class Packed {
 public:
  explicit Packed(const std::vector<FakeMessage>& messages, size_t pitch_multiple = 1)
      : scorer_(1, pitch_multiple),
        buffer_(kBufferBytes, std::byte{0x7f}),
        queue_(Limits(), Pitch()) {
    scorer_.ReleaseAll();
    for (const FakeMessage& message : messages) queue_.Push(queue_.AddLane(), message.work);
    for (const CopyTask& task : queue_.Fill(kStart)) {
      const Placement& placement = task.placement;
      const DocumentChunk& chunk = placement.work->chunk;
      placement.work->message.CopyRows(
          chunk.data_offset + placement.first_row() * chunk.row_bytes, chunk.row_bytes,
          placement.row_count(), placement.pitch_bytes, buffer_.data() + placement.buffer_offset);
      queue_.Copied(task, absl::ZeroDuration());
    }
    batch_ = queue_.Take(kStart);
  }

  QueryGroups Groups() const { return QueryGroups(*batch_, buffer_.data()); }
  const Batch& batch() const { return *batch_; }
  const std::byte* buffer() const { return buffer_.data(); }
  absl::Status Score(QueryGroups& groups) {
    return scorer_.Score({absl::MakeConstSpan(buffer_.data(), batch_->used_bytes), groups.groups()})
        .status();
  }

 private:
  static BatchLimits Limits() {
    BatchLimits limits;
    limits.buffer_bytes = kBufferBytes;
    return limits;
  }
  BatchQueue::PitchOf Pitch() const {
    return [this](ElementType type, uint32_t dim) { return scorer_.RowPitchBytes(type, dim); };
  }

  PuppetScorer scorer_;
  std::vector<std::byte> buffer_;
  BatchQueue queue_;
  Batch* batch_ = nullptr;
};

class QueryGroupsTest : public testing::Test {
 protected:
  FakeMessage Message(const std::shared_ptr<const Query>& query,
                      const std::vector<uint32_t>& lengths = {2, 3}) {
    return RandomMessage(random_, query, std::make_shared<FakeRecipient>(), lengths);
  }
  size_t GroupsOf(const std::vector<FakeMessage>& messages) {
    return Packed(messages).Groups().groups().size();
  }

  std::mt19937 random_{7};
};

TEST_F(QueryGroupsTest, EqualQueriesOfDifferentCallsShareAGroup) {
  const std::shared_ptr<Query> query = RandomQuery(random_, ElementType::kFloat32, 3, 8);
  query->weights = {1, 2, 3};
  SetHash(*query);
  const auto copy = std::make_shared<const Query>(*query);
  Packed packed({Message(query), Message(copy, {4}), Message(query, {5})});
  QueryGroups groups = packed.Groups();
  ASSERT_THAT(groups.groups(), SizeIs(1));
  EXPECT_THAT(groups.groups()[0].documents, SizeIs(4));
  EXPECT_EQ(groups.document_count(), 4u);
  EXPECT_THAT(groups.scored(), SizeIs(3));
}

TEST_F(QueryGroupsTest, AnEqualHashAloneDoesNotShareAGroup) {
  const std::shared_ptr<Query> one = RandomQuery(random_, ElementType::kFloat32, 3, 8);
  const auto other = std::make_shared<Query>(*one);
  other->data.back() ^= std::byte{1};
  ASSERT_EQ(one->hash, other->hash);
  EXPECT_EQ(GroupsOf({Message(one), Message(other), Message(one)}), 2u);
}

TEST_F(QueryGroupsTest, EverythingThatMayChangeAScoreSeparates) {
  // Of one size in bytes, so that type and dim can differ alone.
  const std::shared_ptr<Query> plain = RandomQuery(random_, ElementType::kFloat16, 2, 8);
  plain->weights = {1, 0};
  const std::vector<std::function<void(Query&)>> changes = {
      [](Query& query) { query.weights[1] = 2; },
      [](Query& query) { query.weights[1] = -0.0f; },
      [](Query& query) { query.weights.clear(); },
      [](Query& query) { query.normalize = true; },
      [](Query& query) { query.aggregation = Aggregation::kMean; },
      [](Query& query) { query.return_matches = true; },
      [](Query& query) { query.element_type = ElementType::kBfloat16; },
      [](Query& query) {
        query.dim = 4, query.tokens = 4, query.weights = {1, 0, 0, 0};
      },
      [](Query& query) { query.data[0] ^= std::byte{1}; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto changed = std::make_shared<Query>(*plain);
    changes[i](*changed);
    ASSERT_EQ(changed->hash, plain->hash);  // The hash must not be what separates them.
    EXPECT_EQ(GroupsOf({Message(plain), Message(changed)}), 2u) << "change " << i;
  }
}

TEST_F(QueryGroupsTest, LeavesOutCallsThatAreGone) {
  const std::shared_ptr<Query> query = RandomQuery(random_, ElementType::kFloat32, 2, 4);
  const auto leaving = std::make_shared<FakeRecipient>();
  const FakeMessage gone = RandomMessage(random_, query, leaving, {2, 2, 2});
  const FakeMessage here = Message(query, {3});
  Packed packed({gone, here});
  leaving->Go();
  QueryGroups groups = packed.Groups();
  ASSERT_THAT(groups.groups(), SizeIs(1));
  ASSERT_THAT(groups.groups()[0].documents, SizeIs(1));
  EXPECT_EQ(groups.groups()[0].documents[0].first_row, 6u);
  ASSERT_THAT(groups.scored(), SizeIs(1));
  EXPECT_EQ(groups.scored()[0].work, here.work.get());
}

TEST_F(QueryGroupsTest, HasNoGroupWhenAllCallsAreGone) {
  const auto leaving = std::make_shared<FakeRecipient>();
  Packed packed({RandomMessage(random_, RandomQuery(random_, ElementType::kFloat32, 2, 4), leaving,
                               std::vector<uint32_t>{2})});
  leaving->Go();
  QueryGroups groups = packed.Groups();
  EXPECT_THAT(groups.groups(), IsEmpty());
  EXPECT_THAT(groups.scored(), IsEmpty());
  EXPECT_EQ(groups.document_count(), 0u);
}

TEST_F(QueryGroupsTest, CountsRowsInTheGroupsOwnPitch) {
  // Padded to 16 bytes: pitches 16, 32 and 16.
  const auto small = RandomQuery(random_, ElementType::kFloat16, 2, 3);
  const auto large = RandomQuery(random_, ElementType::kFloat32, 2, 5);
  Packed packed({Message(small, {1, 2}), Message(large, {2}), Message(small, {4})}, 16);
  QueryGroups groups = packed.Groups();
  ASSERT_THAT(groups.groups(), SizeIs(2));
  const QueryGroup& of_small = groups.groups()[0];
  const QueryGroup& of_large = groups.groups()[1];
  EXPECT_EQ(of_small.row_pitch_bytes, 16u);
  EXPECT_EQ(of_large.row_pitch_bytes, 32u);
  // 3 small rows end at 48; 2 large ones lie at 64 = row 2 of 32 bytes, up to 128 = row 8 of 16.
  EXPECT_EQ(of_small.documents[0].first_row, 0u);
  EXPECT_EQ(of_small.documents[1].first_row, 1u);
  EXPECT_EQ(of_large.documents[0].first_row, 2u);
  EXPECT_EQ(of_small.documents[2].first_row, 8u);
  EXPECT_EQ(of_small.row_count, 12u);
  EXPECT_EQ(of_large.row_count, 6u);
  for (const QueryGroup& group : groups.groups()) EXPECT_EQ(group.rows, packed.buffer());
}

TEST_F(QueryGroupsTest, KeepsTheScoresOfACallTogether) {
  const auto one = RandomQuery(random_, ElementType::kFloat32, 2, 4);
  const auto other = RandomQuery(random_, ElementType::kFloat32, 2, 4);
  const auto recipient = std::make_shared<FakeRecipient>();
  const std::vector<uint32_t> lengths = {1, 2};
  Packed packed({RandomMessage(random_, one, recipient, lengths), Message(one),
                 RandomMessage(random_, other, recipient, lengths), Message(other),
                 RandomMessage(random_, one, recipient, lengths)});
  const QueryGroups groups = packed.Groups();
  std::map<const Recipient*, size_t> runs;
  const Recipient* last = nullptr;
  for (const ScoredDocuments& part : groups.scored()) {
    if (part.work->recipient.get() != last) ++runs[last = part.work->recipient.get()];
  }
  EXPECT_THAT(runs, SizeIs(3));
  for (const auto& [unused, count] : runs) EXPECT_EQ(count, 1u);
}

// Scores each message's documents through units, packing and groups, and compares bits: the puppet
// computes what `expected` was computed with.
void ExpectScoresArrive(const std::vector<FakeMessage>& messages, size_t pitch_multiple) {
  Packed packed(messages, pitch_multiple);
  QueryGroups groups = packed.Groups();
  ASSERT_EQ(packed.Score(groups), absl::OkStatus());
  std::map<const Work*, const FakeMessage*> by_work;
  std::map<const Work*, size_t> scored;
  for (const FakeMessage& message : messages) by_work[message.work.get()] = &message;
  for (const ScoredDocuments& part : groups.scored()) {
    const FakeMessage& message = *by_work.at(part.work);
    const size_t tokens = part.work->query->tokens;
    ASSERT_EQ(part.documents.size(), part.scores.size());
    scored[part.work] += part.documents.size();
    for (size_t i = 0; i < part.documents.size(); ++i) {
      const ReferenceDocument& expected = message.expected[part.documents[i]];
      EXPECT_EQ(part.scores[i].status, expected.status);
      EXPECT_EQ(part.scores[i].score, static_cast<float>(expected.score));
      if (!part.work->query->return_matches) continue;
      ASSERT_EQ(part.matches.size(), part.documents.size() * tokens);
      for (size_t token = 0; token < tokens; ++token) {
        EXPECT_EQ(part.matches[i * tokens + token].document_token,
                  expected.tokens[token].document_token);
      }
    }
  }
  for (const FakeMessage& message : messages) {
    EXPECT_EQ(scored[message.work.get()], message.work->chunk.order.size());
  }
}

TEST_F(QueryGroupsTest, BringsEveryScoreToItsDocument) {
  for (const size_t pitch_multiple : {1, 16, 64}) {
    std::vector<std::shared_ptr<Query>> queries;
    for (const ElementType type :
         {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
      queries.push_back(RandomQuery(random_, type, 3, 5));
      queries.push_back(RandomQuery(random_, type, 2, 8));
      queries.back()->return_matches = true;
    }
    std::vector<FakeMessage> messages;
    for (int i = 0; i < 24; ++i) {
      messages.push_back(Message(queries[random_() % queries.size()], {3, 0, 1, 7, 2}));
    }
    // Windows over one text, in any order, with unused rows between.
    const std::vector<DocumentRows> windows = {{20, 4}, {0, 4}, {2, 4}, {22, 8}, {4, 4}, {40, 1}};
    messages.push_back(
        RandomMessage(random_, queries[1], std::make_shared<FakeRecipient>(), windows, 50, 0));
    // Cut into a unit per document, although they overlap.
    messages.push_back(RandomMessage(random_, queries[0], std::make_shared<FakeRecipient>(),
                                     windows, 50, 0, {.max_multiply_adds = 1}));
    ExpectScoresArrive(messages, pitch_multiple);
  }
}

}  // namespace
}  // namespace maxsimd
