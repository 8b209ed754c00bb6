// Small batches that take every path of the kernels, for compute-sanitizer to watch.
#include <cmath>

#include "gtest/gtest.h"

#include "kernels/cuda/cuda_scorer.h"
#include "tests/testing/packing_scorer.h"
#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

TEST(SanitizerTest, EveryKernel) {
  auto cuda = CudaScorer::Create(0);
  if (!cuda.ok()) GTEST_SKIP() << "no GPU here: " << cuda.status().message();
  PackingScorer scorer(std::shared_ptr<Scorer>(*std::move(cuda)));
  for (const ElementType type : kAllElementTypes) {
    for (const uint32_t tokens : {5, 50, 100, 300}) {
      for (const uint32_t dim : {3, 96, 128, 320}) {
        for (const bool matches : {false, true}) {
          TestGroup group({.element_type = type,
                           .query_tokens = tokens,
                           .dim = dim,
                           .lengths = {1, 64, 100, 0, 1500},  // The last is split.
                           .normalize = matches && dim == 96,
                           .return_matches = matches});
          group.SetRow(2, 0, std::nanf(""));
          ScoreAlone(scorer, group);
          EXPECT_TRUE(AgreesWithReference(group)) << tokens << ' ' << dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace maxsimd
