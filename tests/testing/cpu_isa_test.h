// A test that runs once for each backend of the build, by name: the CPU's instruction sets, and
// cuda; those that the machine lacks are skipped with a message that says so.
#ifndef MAXSIMD_TESTS_TESTING_CPU_ISA_TEST_H_
#define MAXSIMD_TESTS_TESTING_CPU_ISA_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/cpu/isa.h"
#ifdef MAXSIMD_HAVE_CUDA
#include "kernels/cuda/cuda_scorer.h"
#endif
#include "tests/testing/packing_scorer.h"

namespace maxsimd {

inline std::vector<std::string> CompiledIsaNames() {
  std::vector<std::string> names;
  for (const CpuKernel* kernel : CompiledCpuKernels()) names.push_back(kernel->isa);
#ifdef MAXSIMD_HAVE_CUDA
  names.push_back("cuda");
#endif
  return names;
}

inline std::string IsaTestName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

class CpuIsaTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifdef MAXSIMD_HAVE_CUDA
    if (GetParam() == "cuda") {
      absl::StatusOr<std::unique_ptr<CudaScorer>> cuda = CudaScorer::Create(0);
      if (!cuda.ok()) GTEST_SKIP() << "no GPU here: " << cuda.status().message();
      cuda_ = *std::move(cuda);
      scorer_ = NewScorer(1);
      return;
    }
#endif
    for (const CpuKernel* kernel : SupportedCpuKernels()) {
      if (kernel->isa == GetParam()) {
        scorer_ = NewScorer(1);
        return;
      }
    }
    GTEST_SKIP() << "this machine has no " << GetParam();
  }

  // CUDA has no threads: there it is another view of the one pipeline.
  std::unique_ptr<Scorer> NewScorer(int threads) const {
    if (cuda_ != nullptr) return std::make_unique<PackingScorer>(cuda_);
    auto scorer = CpuScorer::Create(threads, GetParam());
    EXPECT_TRUE(scorer.ok()) << scorer.status();
    return *std::move(scorer);
  }

  std::shared_ptr<Scorer> cuda_;
  std::unique_ptr<Scorer> scorer_;  // One thread.
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_CPU_ISA_TEST_H_
