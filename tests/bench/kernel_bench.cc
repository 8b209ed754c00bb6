// How fast and how exact the CPU kernels are: every instruction set, element type and shape.
//
//   maxsimd_kernel_bench --benchmark_filter='passage_ragged/float16/avx512/threads:1$'
//
// Names are SHAPE/TYPE/ISA/threads:N; shapes are those of tests/bench/shapes.  Counters:
//   GFLOP/s      two for each multiply-add of the true lengths
//   GB/s         bytes of the documents' true rows
//   error/bound  the largest |score - exact| over the documents compared (the first of at most 2e8
//                multiply-adds) as a part of the contract's bound
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/work_list.h"
#include "kernels/reference/reference_scorer.h"
#include "tests/testing/test_group.h"

namespace maxsimd {
namespace {

TestGroupOptions ReadShape(const std::filesystem::path& path) {
  std::ifstream file(path);
  TestGroupOptions options;
  if (!(file >> options.query_tokens >> options.dim)) {
    throw std::runtime_error("no shape in " + path.string());
  }
  options.lengths.clear();
  for (uint32_t length; file >> length;) options.lengths.push_back(length);
  return options;
}

// Of the first documents, as many as the oracle does within about a second.
double LargestErrorInBounds(TestGroup& group, const std::vector<DocumentScore>& scores) {
  QueryGroup view = group.View();
  double multiply_adds = 0;
  size_t count = 0;
  while (count < scores.size() && (count == 0 || multiply_adds < 2e8)) {
    multiply_adds +=
        double{1} * view.documents[count++].length * view.query.tokens * view.query.dim;
  }
  view.documents = view.documents.first(count);
  const std::vector<ReferenceDocument> right = ReferenceScores(view);
  double largest = 0;
  for (size_t d = 0; d < count; ++d) {
    if (right[d].status != DocumentStatus::kScored) continue;
    largest = std::max(largest, std::abs(scores[d].score - right[d].score) / right[d].bound);
  }
  return largest;
}

void ScoreShape(benchmark::State& state, TestGroupOptions options, ElementType type,
                const std::string& isa, int threads) {
  options.element_type = type;
  TestGroup group(options);
  const auto scorer = CpuScorer::Create(threads, isa);
  if (!scorer.ok()) return state.SkipWithError(scorer.status().ToString().c_str());
  QueryGroup view = group.View();
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&view, 1);
  for (auto _ : state) {
    if (!(*scorer)->Score(batch).ok()) return state.SkipWithError("Score failed");
  }
  using benchmark::Counter;
  const double bytes = static_cast<double>(view.row_count) * view.row_pitch_bytes;
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = Counter(2e-9 * MultiplyAdds(view), rate);
  state.counters["GB/s"] = Counter(1e-9 * bytes, rate);
  state.counters["error/bound"] = LargestErrorInBounds(group, std::vector(group.scores));
}

void RegisterAll(const std::string& shapes) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(shapes)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  for (const auto& path : paths) {
    const TestGroupOptions options = ReadShape(path);
    for (const ElementType type : kAllElementTypes) {
      for (const CpuKernel* kernel : SupportedCpuKernels()) {
        for (const int threads : {1, cores}) {
          const std::string name = path.stem().string() + "/" + std::string(ElementTypeName(type)) +
                                   "/" + kernel->isa + "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [=, isa = std::string(kernel->isa)](benchmark::State& s) {
                                         ScoreShape(s, options, type, isa, threads);
                                       })
              ->Unit(benchmark::kMillisecond)
              ->UseRealTime();
          if (cores == 1) break;
        }
      }
    }
  }
}

}  // namespace
}  // namespace maxsimd

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  maxsimd::RegisterAll(MAXSIMD_BENCH_SHAPES);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
