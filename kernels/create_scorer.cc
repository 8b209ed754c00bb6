#include "kernels/create_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/status_macros.h"
#ifdef MAXSIMD_HAVE_CUDA
#include "kernels/cuda/cuda_scorer.h"
#endif

namespace maxsimd {
namespace {

using Scorers = std::vector<std::unique_ptr<Scorer>>;

absl::StatusOr<Scorers> CreateCpuScorers(const ScorerOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, CpuScorer::Create(options.threads));
  Scorers scorers;
  scorers.push_back(std::move(scorer));
  return scorers;
}

#ifdef MAXSIMD_HAVE_CUDA
absl::StatusOr<Scorers> CreateCudaScorers(const ScorerOptions& options) {
  const std::vector<int> devices = options.devices.empty() ? std::vector<int>{0} : options.devices;
  Scorers scorers;
  for (const int device : devices) {
    ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, CudaScorer::Create(device));
    scorers.push_back(std::move(scorer));
  }
  return scorers;
}
#else
absl::StatusOr<Scorers> CreateCudaScorers(const ScorerOptions&) {
  return absl::FailedPreconditionError("backend: cuda is not in this build");
}
#endif

}  // namespace

absl::StatusOr<Scorers> CreateScorers(const ScorerOptions& options, std::string* fallback_reason) {
  if (options.backend == "cpu") return CreateCpuScorers(options);
  if (options.backend == "cuda") return CreateCudaScorers(options);
  if (options.backend != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("backend: ", options.backend, " is none of auto, cpu, cuda"));
  }
  absl::StatusOr<Scorers> scorers = CreateCudaScorers(options);
  if (scorers.ok()) return scorers;
  if (fallback_reason != nullptr) *fallback_reason = std::string(scorers.status().message());
  return CreateCpuScorers(options);
}

}  // namespace maxsimd
