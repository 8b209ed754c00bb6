#include "kernels/create_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/status_macros.h"

namespace maxsimd {

absl::StatusOr<std::vector<std::unique_ptr<Scorer>>> CreateScorers(const ScorerOptions& options) {
  if (options.backend == "cuda") {
    return absl::FailedPreconditionError("backend: cuda is not in this build");
  }
  if (options.backend != "cpu" && options.backend != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("backend: ", options.backend, " is none of auto, cpu, cuda"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, CpuScorer::Create(options.threads));
  std::vector<std::unique_ptr<Scorer>> scorers;
  scorers.push_back(std::move(scorer));
  return scorers;
}

}  // namespace maxsimd
