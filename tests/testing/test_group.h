// A query group with the memory it refers to, filled with chosen data, and its comparison with the
// oracle.
//
// The rows and the query lie in heap blocks that end exactly at their last byte, so that
// AddressSanitizer sees any read beyond them.
#ifndef MAXSIMD_TESTS_TESTING_TEST_GROUP_H_
#define MAXSIMD_TESTS_TESTING_TEST_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "kernels/scorer.h"

namespace maxsimd {

enum class TestData {
  kSigned,
  kPositive,  // Terms of one sign and like size: rounding errors add up.
  kConstant,  // All terms equal: rounding errors are all the same.
  kOneLarge,  // The first term is so large that each of the others is lost in adding it.
  kNegative,  // All similarities below 0.
  kTiny,      // float16 subnormals; the other types far below them.
  kHuge,      // Near float16's limit; the other types far above it.
};

const char* TestDataName(TestData data);

struct TestGroupOptions {
  ElementType element_type = ElementType::kFloat32;
  uint32_t query_tokens = 4;
  uint32_t dim = 8;
  std::vector<uint32_t> lengths = {3};  // Back to back from row 0.
  TestData data = TestData::kSigned;
  Aggregation aggregation = Aggregation::kSum;
  std::vector<float> weights = {};
  bool normalize = false;
  bool return_matches = false;
  size_t misalignment = 0;  // Bytes from a 16-byte boundary to the query and to row 0.
  uint64_t seed = 1;
};

// Bytes that end where their heap block ends.
class ExactBytes {
 public:
  ExactBytes(size_t size, size_t misalignment)
      : block_(new std::byte[misalignment + size]), data_(block_.get() + misalignment) {}
  std::byte* data() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> block_;
  std::byte* data_;
};

class TestGroup {
 public:
  explicit TestGroup(const TestGroupOptions& options);

  // Refers to this object's memory; its outputs are scores and matches.
  QueryGroup View();

  void SetQuery(uint32_t token, uint32_t k, float value);
  void SetRow(uint64_t row, uint32_t k, float value);
  void FillRow(uint64_t row, float value);
  uint64_t row_count() const { return row_count_; }
  const TestGroupOptions& options() const { return options_; }

  std::vector<DocumentRows> documents;
  std::vector<DocumentScore> scores;
  std::vector<TokenMatch> matches;

 private:
  TestGroupOptions options_;
  uint64_t row_count_;
  ExactBytes query_;
  ExactBytes rows_;
};

// Scores one group alone; a failure of Score fails the test.
void ScoreAlone(Scorer& scorer, TestGroup& group);

// Whether the group's outputs agree with the oracle: statuses, scores and matches.
::testing::AssertionResult AgreesWithReference(TestGroup& group);

// Scores the group and expects the oracle's results.
void ExpectScoresAsReference(Scorer& scorer, const TestGroupOptions& options);

// The scores' bits and statuses, for comparisons that allow no difference.
std::vector<uint64_t> ScoreBits(const std::vector<DocumentScore>& scores);

// Every element type, for loops.
inline constexpr ElementType kAllElementTypes[] = {ElementType::kFloat32, ElementType::kFloat16,
                                                   ElementType::kBfloat16};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_TEST_GROUP_H_
