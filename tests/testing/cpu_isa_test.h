// A test that runs once for each instruction set of the build, by name; those that the machine
// lacks are skipped with a message that says so.
#ifndef MAXSIMD_TESTS_TESTING_CPU_ISA_TEST_H_
#define MAXSIMD_TESTS_TESTING_CPU_ISA_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/cpu/isa.h"

namespace maxsimd {

inline std::vector<std::string> CompiledIsaNames() {
  std::vector<std::string> names;
  for (const CpuKernel* kernel : CompiledCpuKernels()) names.push_back(kernel->isa);
  return names;
}

inline std::string IsaTestName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

class CpuIsaTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const CpuKernel* kernel : SupportedCpuKernels()) {
      if (kernel->isa == GetParam()) {
        scorer_ = NewScorer(1);
        return;
      }
    }
    GTEST_SKIP() << "this machine has no " << GetParam();
  }

  std::unique_ptr<CpuScorer> NewScorer(int threads) const {
    auto scorer = CpuScorer::Create(threads, GetParam());
    EXPECT_TRUE(scorer.ok()) << scorer.status();
    return *std::move(scorer);
  }

  std::unique_ptr<CpuScorer> scorer_;  // One thread.
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_CPU_ISA_TEST_H_
