// MaxSim on the processor: the best kernel it has, over all of its cores.
//
// Precision, special values, errors: as Scorer; the arithmetic is that of cpu_kernel.h, the sum
// over query tokens is taken in float64 in the order of the tokens. Threads: concurrent calls of
// Score wait for each other.  Small batches (see kWakeMultiplyAdds) are scored by the caller alone,
// larger ones together with threads - 1 helpers.
#ifndef MAXSIMD_KERNELS_CPU_CPU_SCORER_H_
#define MAXSIMD_KERNELS_CPU_CPU_SCORER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/cpu_kernel.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/work_list.h"
#include "kernels/mutex.h"
#include "kernels/scorer.h"

namespace maxsimd {

class CpuScorer : public Scorer {
 public:
  // threads: 0 is one per core.  isa: a name from SupportedCpuKernels; empty is the best of them.
  // Errors: InvalidArgument     threads is out of [0, 1024]
  //         FailedPrecondition  this machine or this build has no such instruction set
  static absl::StatusOr<std::unique_ptr<CpuScorer>> Create(int threads, absl::string_view isa = "");

  absl::StatusOr<ScoreTimings> Score(const ScoreBatch& batch) override;
  absl::StatusOr<PackedBuffer> AllocatePackedBuffer(size_t size_bytes) override;
  size_t RowPitchBytes(ElementType type, uint32_t dim) const override {
    return dim * ElementBytes(type);
  }
  int concurrency() const override { return 1; }
  std::string backend() const override { return "cpu"; }
  std::vector<std::string> devices() const override;
  double multiply_adds_per_second() const override { return multiply_adds_per_second_; }

 private:
  // What one thread works in.
  struct Workspace {
    AlignedBuffer<float> scratch;
    AlignedBuffer<float> maxima;
    AlignedBuffer<uint32_t> matches;
  };
  // A group whose query has been packed.
  struct PackedGroup {
    const CpuArithmetic* arithmetic = nullptr;
    size_t packed_query = 0;  // Where in packed_queries_.
    double divisor = 1;
  };
  // What one part of a long document found.
  struct PartResult {
    size_t maxima = 0;  // Where in part_maxima_ and part_matches_.
    bool finite = true;
  };

  CpuScorer(const CpuKernel& kernel, int threads);

  size_t PackWave(absl::Span<const QueryGroup> groups) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScoreWave(absl::Span<QueryGroup> groups) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReserveParts(absl::Span<const QueryGroup> groups) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CombineParts(absl::Span<QueryGroup> groups) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Called by the pool's threads, while Score holds the mutex: they only read what is shared.
  void ScoreItem(absl::Span<QueryGroup> groups, size_t item,
                 int thread) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ScoreWholeDocument(QueryGroup& group, const PackedGroup& packed, size_t document,
                          Workspace& workspace) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool FindMaxima(const QueryGroup& group, const PackedGroup& packed, size_t document,
                  uint32_t first_token, uint32_t tokens, float* scratch, float* maxima,
                  uint32_t* matches) const ABSL_NO_THREAD_SAFETY_ANALYSIS;

  double MeasureSpeed();

  const CpuKernel& kernel_;
  const int threads_;
  double multiply_adds_per_second_ = 1;

  Mutex mutex_;
  ThreadPool pool_ ABSL_GUARDED_BY(mutex_);
  std::vector<Workspace> workspaces_ ABSL_GUARDED_BY(mutex_);  // One per thread.
  // Of the wave of groups at hand.
  std::vector<PackedGroup> packed_groups_ ABSL_GUARDED_BY(mutex_);
  AlignedBuffer<float> packed_queries_ ABSL_GUARDED_BY(mutex_);
  std::vector<WorkItem> items_ ABSL_GUARDED_BY(mutex_);
  std::vector<PartResult> parts_ ABSL_GUARDED_BY(mutex_);  // One per item.
  AlignedBuffer<float> part_maxima_ ABSL_GUARDED_BY(mutex_);
  AlignedBuffer<uint32_t> part_matches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace maxsimd

#endif  // MAXSIMD_KERNELS_CPU_CPU_SCORER_H_
