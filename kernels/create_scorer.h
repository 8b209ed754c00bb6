// Picks a backend by name and starts it: all that a server needs beside the Scorer interface.
//
// Errors: InvalidArgument     an option is out of range or names no backend; the message names it
//         FailedPrecondition  the backend is not in this build, or its device is not in this
//         machine ResourceExhausted   the device's memory does not suffice
#ifndef MAXSIMD_KERNELS_CREATE_SCORER_H_
#define MAXSIMD_KERNELS_CREATE_SCORER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "kernels/scorer.h"

namespace maxsimd {

struct ScorerOptions {
  std::string backend =
      "auto";                // "auto", "cpu", "cuda"; auto is cuda where it can start, else cpu.
  std::vector<int> devices;  // CUDA ordinals; empty: the first.
  int threads = 0;           // CPU threads that score; 0: one per core.
};

// One Scorer per device pipeline: one for the CPU, one per entry of `devices` for CUDA (an ordinal
// may stand there twice).  Where auto falls back to the CPU and `fallback_reason` isn't null, it is
// set to why.
absl::StatusOr<std::vector<std::unique_ptr<Scorer>>> CreateScorers(
    const ScorerOptions& options, std::string* fallback_reason = nullptr);

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CREATE_SCORER_H_
