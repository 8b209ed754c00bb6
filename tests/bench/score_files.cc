// Scores matrices from files when told to, and says how long it took: so that a script can
// alternate between maxsimd's CPU kernels and other programs on the same data (cpu_peers.py).
//
//   maxsimd_score_files SHAPE TYPE QUERY ROWS
//
// SHAPE is a file of tests/bench/shapes; QUERY and ROWS hold its matrices, rows back to back, as
// TYPE (float32, float16, bfloat16).  The first line of output names the instruction sets of this
// machine, best first.  Then each line of input, `ISA THREADS CALLS`, is answered by one line: the
// mean seconds of so many calls, and every document's score.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_scorer.h"
#include "kernels/cpu/isa.h"
#include "kernels/element_type.h"

namespace maxsimd {
namespace {

ElementType TypeOf(const std::string& name) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    if (ElementTypeName(type) == name) return type;
  }
  throw std::runtime_error("no element type is called " + name);
}

void ReadExactly(const std::string& path, std::byte* data, size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(data), static_cast<std::streamsize>(bytes));
  if (!file || file.peek() != EOF) throw std::runtime_error(path + ": not of the shape's size");
}

class Group {
 public:
  Group(const std::string& shape, ElementType type, const std::string& query,
        const std::string& rows)
      : type_(type) {
    std::ifstream file(shape);
    if (!(file >> tokens_ >> dim_)) throw std::runtime_error("no shape in " + shape);
    for (uint32_t length; file >> length; row_count_ += length) {
      documents_.push_back({.first_row = row_count_, .length = length});
    }
    scores_.resize(documents_.size());
    query_.resize(tokens_ * dim_ * ElementBytes(type));
    ReadExactly(query, query_.data(), query_.size());
    const size_t bytes = row_count_ * dim_ * ElementBytes(type);
    const auto scorer = CpuScorer::Create(1);
    auto buffer = (*scorer)->AllocatePackedBuffer(bytes);  // As the server's: huge pages.
    if (!buffer.ok()) throw std::runtime_error(buffer.status().ToString());
    rows_ = *std::move(buffer);
    ReadExactly(rows, rows_.data(), bytes);
  }

  QueryGroup View() {
    QueryGroup group;
    group.query.element_type = type_;
    group.query.tokens = tokens_;
    group.query.dim = dim_;
    group.query.data = query_.data();
    group.element_type = type_;
    group.rows = rows_.data();
    group.row_pitch_bytes = dim_ * ElementBytes(type_);
    group.row_count = row_count_;
    group.documents = documents_;
    group.scores = absl::MakeSpan(scores_);
    return group;
  }
  const std::vector<DocumentScore>& scores() const { return scores_; }

 private:
  ElementType type_;
  uint32_t tokens_ = 0;
  uint32_t dim_ = 0;
  uint64_t row_count_ = 0;
  std::vector<std::byte> query_;
  PackedBuffer rows_;
  std::vector<DocumentRows> documents_;
  std::vector<DocumentScore> scores_;
};

double SecondsPerCall(CpuScorer& scorer, Group& group, int calls) {
  QueryGroup view = group.View();
  ScoreBatch batch;
  batch.groups = absl::MakeSpan(&view, 1);
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) {
    const auto timings = scorer.Score(batch);
    if (!timings.ok()) throw std::runtime_error(timings.status().ToString());
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

void Serve(Group& group) {
  for (const CpuKernel* kernel : SupportedCpuKernels()) std::cout << kernel->isa << ' ';
  std::cout << std::endl;
  std::cout.precision(std::numeric_limits<float>::max_digits10);
  std::map<std::pair<std::string, int>, std::unique_ptr<CpuScorer>> scorers;
  std::string isa;
  for (int threads, calls; std::cin >> isa >> threads >> calls;) {
    std::unique_ptr<CpuScorer>& scorer = scorers[{isa, threads}];
    if (scorer == nullptr) {
      auto created = CpuScorer::Create(threads, isa);
      if (!created.ok()) throw std::runtime_error(created.status().ToString());
      scorer = *std::move(created);
    }
    std::cout << SecondsPerCall(*scorer, group, calls);
    for (const DocumentScore& score : group.scores()) std::cout << ' ' << score.score;
    std::cout << std::endl;
  }
}

}  // namespace
}  // namespace maxsimd

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: maxsimd_score_files SHAPE TYPE QUERY ROWS\n";
    return 2;
  }
  try {
    maxsimd::Group group(argv[1], maxsimd::TypeOf(argv[2]), argv[3], argv[4]);
    maxsimd::Serve(group);
  } catch (const std::exception& error) {
    std::cerr << "maxsimd_score_files: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
