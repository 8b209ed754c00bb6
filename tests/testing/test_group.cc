#include "tests/testing/test_group.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/element_conversion.h"
#include "kernels/reference/reference_scorer.h"

namespace maxsimd {
namespace {

// Uniform in [0, 1); splitmix64, which is as good from any seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  float Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t bits = state_;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return static_cast<float>((bits ^ bits >> 31) >> 40) * 0x1p-24f;
  }

 private:
  uint64_t state_;
};

enum class Side { kQuery, kDocument };

float TinyScale(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 1e-18f;  // Products of 1e-36, which float32 still holds in full.
    case ElementType::kFloat16:
      return 0x1p-15f;  // Subnormal below 2^-14.
    case ElementType::kBfloat16:
      return 1e-12f;
  }
  return 0;
}

float Value(const TestGroupOptions& options, Side side, uint32_t k, Random& random) {
  const float uniform = random.Next();
  const bool is_query = side == Side::kQuery;
  switch (options.data) {
    case TestData::kSigned:
      return uniform * 2 - 1;
    case TestData::kPositive:
      return uniform + 0.5f;
    case TestData::kConstant:
      return is_query ? 0.1f : 0.3f;
    case TestData::kOneLarge:
      if (is_query || k == 0) return 1;
      // Just under half a unit in the last place of 1 (float16 has nothing that small).
      return options.element_type == ElementType::kFloat16 ? 0x1p-24f : 0.99f * 0x1p-24f;
    case TestData::kNegative:
      return is_query ? uniform + 0.5f : -uniform - 0.5f;
    case TestData::kTiny:
      return (uniform * 2 - 1) * TinyScale(options.element_type);
    case TestData::kHuge:
      return (uniform * 2 - 1) * (options.element_type == ElementType::kFloat16 ? 6e4f : 1e15f);
  }
  return 0;
}

void Fill(const TestGroupOptions& options, Side side, size_t rows, std::byte* data) {
  Random random(options.seed * 2 + (side == Side::kQuery ? 1 : 0));
  for (size_t row = 0; row < rows; ++row) {
    for (uint32_t k = 0; k < options.dim; ++k) {
      StoreElement(options.element_type, Value(options, side, k, random), data,
                   row * options.dim + k);
    }
  }
}

size_t MatrixBytes(const TestGroupOptions& options, size_t rows) {
  return rows * options.dim * ElementBytes(options.element_type);
}

::testing::AssertionResult ScoreAgrees(const DocumentScore& got, const ReferenceDocument& right) {
  if (right.may_overflow && got.status == DocumentStatus::kNonFinite) {
    return ::testing::AssertionSuccess();
  }
  if (got.status != right.status && !right.may_overflow) {
    return ::testing::AssertionFailure() << "status " << static_cast<int>(got.status) << ", not "
                                         << static_cast<int>(right.status);
  }
  if (right.status != DocumentStatus::kScored) {
    if (got.score == -std::numeric_limits<float>::infinity() || right.may_overflow) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "score " << got.score << " of an unscored document";
  }
  if (std::abs(got.score - right.score) <= right.bound) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "score " << got.score << " is " << std::abs(got.score - right.score) / right.bound
         << " bounds from " << right.score;
}

::testing::AssertionResult MatchAgrees(const QueryGroup& group, size_t document, uint32_t token,
                                       const TokenMatch& got, const ReferenceToken& right) {
  if (!(std::abs(got.similarity - right.similarity) <= right.Bound())) {
    return ::testing::AssertionFailure() << "similarity of query token " << token << " is "
                                         << got.similarity << ", not " << right.similarity;
  }
  if (got.document_token == right.document_token) return ::testing::AssertionSuccess();
  if (got.document_token >= group.documents[document].length) {
    return ::testing::AssertionFailure() << "match " << got.document_token << " is no row";
  }
  const double similarity = ReferenceSimilarity(group, document, token, got.document_token);
  if (similarity >= right.similarity - 2 * right.Bound() && similarity < right.similarity) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "query token " << token << " matched row " << got.document_token << " (" << similarity
         << "), not " << right.document_token << " (" << right.similarity << ")";
}

}  // namespace

const char* TestDataName(TestData data) {
  switch (data) {
    case TestData::kSigned:
      return "signed";
    case TestData::kPositive:
      return "positive";
    case TestData::kConstant:
      return "constant";
    case TestData::kOneLarge:
      return "one large";
    case TestData::kNegative:
      return "negative";
    case TestData::kTiny:
      return "tiny";
    case TestData::kHuge:
      return "huge";
  }
  return "";
}

TestGroup::TestGroup(const TestGroupOptions& options)
    : options_(options),
      row_count_(std::accumulate(options.lengths.begin(), options.lengths.end(), uint64_t{0})),
      query_(MatrixBytes(options, options.query_tokens), options.misalignment),
      rows_(MatrixBytes(options, row_count_), options.misalignment) {
  Fill(options_, Side::kQuery, options_.query_tokens, query_.data());
  Fill(options_, Side::kDocument, row_count_, rows_.data());
  uint64_t row = 0;
  for (const uint32_t length : options_.lengths) {
    documents.push_back({row, length});
    row += length;
  }
}

QueryGroup TestGroup::View() {
  scores.assign(documents.size(), {std::nanf(""), DocumentStatus::kScored});
  matches.assign(options_.return_matches ? documents.size() * options_.query_tokens : 0,
                 TokenMatch());
  QueryGroup group;
  group.query.element_type = options_.element_type;
  group.query.tokens = options_.query_tokens;
  group.query.dim = options_.dim;
  group.query.data = query_.data();
  group.query.weights = options_.weights;
  group.query.aggregation = options_.aggregation;
  group.query.normalize = options_.normalize;
  group.query.return_matches = options_.return_matches;
  group.element_type = options_.element_type;
  group.rows = rows_.data();
  group.row_pitch_bytes = MatrixBytes(options_, 1);
  group.row_count = row_count_;
  group.documents = documents;
  group.scores = absl::MakeSpan(scores);
  group.matches = absl::MakeSpan(matches);
  return group;
}

void TestGroup::SetQuery(uint32_t token, uint32_t k, float value) {
  StoreElement(options_.element_type, value, query_.data(), size_t{token} * options_.dim + k);
}

void TestGroup::SetRow(uint64_t row, uint32_t k, float value) {
  StoreElement(options_.element_type, value, rows_.data(), row * options_.dim + k);
}

void TestGroup::FillRow(uint64_t row, float value) {
  for (uint32_t k = 0; k < options_.dim; ++k) SetRow(row, k, value);
}

void ScoreAlone(Scorer& scorer, TestGroup& group) {
  QueryGroup view = group.View();
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&view, 1);
  const auto timings = scorer.Score(batch);
  ASSERT_TRUE(timings.ok()) << timings.status();
}

::testing::AssertionResult AgreesWithReference(TestGroup& group) {
  const std::vector<DocumentScore> scores = group.scores;
  const std::vector<TokenMatch> matches = group.matches;
  const QueryGroup view = group.View();  // Clears the outputs.
  group.scores = scores;
  group.matches = matches;
  const std::vector<ReferenceDocument> right = ReferenceScores(view);
  for (size_t d = 0; d < right.size(); ++d) {
    if (const auto agrees = ScoreAgrees(scores[d], right[d]); !agrees) {
      return ::testing::AssertionFailure() << "document " << d << ": " << agrees.message();
    }
    if (!view.query.return_matches || scores[d].status != DocumentStatus::kScored ||
        right[d].status != DocumentStatus::kScored) {
      continue;
    }
    for (uint32_t i = 0; i < view.query.tokens; ++i) {
      const TokenMatch& match = matches[d * view.query.tokens + i];
      if (const auto agrees = MatchAgrees(view, d, i, match, right[d].tokens[i]); !agrees) {
        return ::testing::AssertionFailure() << "document " << d << ": " << agrees.message();
      }
    }
  }
  return ::testing::AssertionSuccess();
}

void ExpectScoresAsReference(Scorer& scorer, const TestGroupOptions& options) {
  TestGroup group(options);
  ScoreAlone(scorer, group);
  EXPECT_TRUE(AgreesWithReference(group))
      << ElementTypeName(options.element_type) << ' ' << TestDataName(options.data) << ", "
      << options.query_tokens << " query tokens, dim " << options.dim << ", "
      << options.lengths.size() << " documents from length "
      << (options.lengths.empty() ? 0 : options.lengths[0])
      << (options.normalize ? ", normalized" : "");
}

std::vector<uint64_t> ScoreBits(const std::vector<DocumentScore>& scores) {
  std::vector<uint64_t> bits;
  for (const DocumentScore& score : scores) {
    bits.push_back(uint64_t{static_cast<uint8_t>(score.status)} << 32 |
                   std::bit_cast<uint32_t>(score.score));
  }
  return bits;
}

}  // namespace maxsimd
