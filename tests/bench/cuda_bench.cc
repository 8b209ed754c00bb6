// Times the CUDA kernels on the shapes in tests/bench/shapes as gpu_peers.py times the peers, and
// prints its columns.
//
//   maxsimd_cuda_bench SHAPES_FOLDER [--type=float16] [--tflops=750] [--read=0] [--groups=1]
//                      [--serial] [--launch] [SHAPE...]
//
// Each time is the median of CUDA-graph replays over several document sets larger together than the
// L2 cache, in microseconds per call.  `floor_us` is the larger of bytes / read bandwidth (measured
// here, or given in TB/s) and FLOPs / the given rate.  `error` is the largest |score - float64| of
// the first 40 documents at most, divided by the query length.  --groups: the documents are those
// of as many queries, in one batch.  --serial: no call begins before the one before it has ended.
// --launch: instead of all that, what a serial launch costs that does nothing, and one that makes
// 1, 2 and 3 loads in a chain.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "kernels/cuda/batch_plan.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/stream.h"
#include "kernels/element_conversion.h"
#include "kernels/reference/reference_scorer.h"
#include "tests/bench/ceilings.h"

namespace maxsimd::cuda {
namespace {

constexpr size_t kSetBytes = 400'000'000;  // Of all sets: several times the L2 cache.
constexpr size_t kRandomRows = 65536;
constexpr int kRepeats = 25;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

void CheckCuda(cudaError_t error, const char* what) {
  Check(ToStatus(error, what));
}

struct Shape {
  std::string name;
  uint32_t query_tokens = 0;
  uint32_t dim = 0;
  std::vector<DocumentRows> documents;
  size_t tokens = 0;
};

Shape ReadShape(const std::filesystem::path& path) {
  Shape shape;
  shape.name = path.stem();
  std::ifstream file(path);
  file >> shape.query_tokens >> shape.dim;
  for (uint32_t length; file >> length;) {
    shape.documents.push_back({shape.tokens, length});
    shape.tokens += length;
  }
  return shape;
}

// Unit rows, `pitch_bytes` apart.
std::vector<std::byte> RandomRows(ElementType type, size_t rows, uint32_t dim, size_t pitch_bytes,
                                  uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> data(rows * pitch_bytes);
  std::vector<float> row(dim);
  for (size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (float& value : row) {
      // The sum of uniforms is near enough to normal.
      value = static_cast<float>(random() & 0xffff) + static_cast<float>(random() & 0xffff) - 65535;
      squares += double{value} * value;
    }
    for (uint32_t k = 0; k < dim; ++k) {
      StoreElement(type, static_cast<float>(row[k] / std::sqrt(squares)),
                   data.data() + r * pitch_bytes, k);
    }
  }
  return data;
}

struct Options {
  ElementType type = ElementType::kFloat16;
  double read = 0;
  double flops = 750e12;
  uint32_t groups = 1;
  PlanOptions plan;
  bool launch = false;
};

// The documents of a shape, several times over in device memory.
class Sets {
 public:
  Sets(const Shape& shape, const Options& options) : shape_(shape), options_(options) {
    const size_t row_bytes = shape.dim * ElementBytes(options.type);
    pitch_ = (row_bytes + 15) / 16 * 16;
    count_ = std::clamp<size_t>((kSetBytes + shape.tokens * pitch_ - 1) / (shape.tokens * pitch_),
                                2, 256);
    apart_ = std::max(shape.tokens, (kSetBytes + count_ * pitch_ - 1) / (count_ * pitch_));
    const size_t rows = count_ * apart_;
    Check(rows_.Reserve(rows * pitch_));
    random_ = RandomRows(options.type, kRandomRows, shape.dim, pitch_, 1);
    query_ = RandomRows(options.type, shape.query_tokens, shape.dim, row_bytes, 2);
    for (size_t row = 0; row < rows; row += kRandomRows) {
      const size_t bytes = std::min(kRandomRows, rows - row) * pitch_;
      CheckCuda(cudaMemcpy(rows_.data() + row * pitch_, random_.data(), bytes, cudaMemcpyDefault),
                "rows");
    }
    scores_.resize(shape.documents.size());
    MakeGroups();
  }

  size_t count() const { return count_; }
  RowPlace Place(size_t set) const {
    return {rows_.data(), rows_.size(), rows_.data() + set * apart_ * pitch_};
  }
  absl::Span<const QueryGroup> groups() const { return groups_; }

  // Of the first documents of set 0, from scores on the device.
  double Error(const ScoreOut* device_scores) {
    std::vector<ScoreOut> scores(shape_.documents.size());
    CheckCuda(cudaMemcpy(scores.data(), device_scores, scores.size() * sizeof(ScoreOut),
                         cudaMemcpyDefault),
              "scores");
    std::vector<std::byte> host;
    double error = 0;
    double work = 0;
    for (size_t d = 0; d < shape_.documents.size(); ++d) {
      const DocumentRows document = shape_.documents[d];
      work += double{1} * document.length * shape_.query_tokens * shape_.dim;
      if (d > 0 && (d >= 40 || work > 3e8)) break;
      host.resize(document.length * pitch_);
      CheckCuda(cudaMemcpy(host.data(), rows_.data() + document.first_row * pitch_, host.size(),
                           cudaMemcpyDefault),
                "document");
      QueryGroup group = groups_[0];
      const DocumentRows whole{0, document.length};
      group.rows = host.data();
      group.row_count = document.length;
      group.documents = absl::MakeConstSpan(&whole, 1);
      error = std::max(error, std::abs(scores[d].score - ReferenceScores(group)[0].score));
    }
    return error / shape_.query_tokens;
  }

 private:
  void MakeGroups() {
    const size_t per_group = CeilDiv(shape_.documents.size(), options_.groups);
    for (size_t first = 0; first < shape_.documents.size(); first += per_group) {
      QueryGroup group;
      group.query.element_type = options_.type;
      group.query.tokens = shape_.query_tokens;
      group.query.dim = shape_.dim;
      group.query.data = query_.data();
      group.element_type = options_.type;
      group.row_pitch_bytes = pitch_;
      group.row_count = shape_.tokens;
      const size_t count = std::min(per_group, shape_.documents.size() - first);
      group.documents = absl::MakeConstSpan(shape_.documents).subspan(first, count);
      group.scores = absl::MakeSpan(scores_).subspan(first, count);
      groups_.push_back(group);
    }
  }

  const Shape& shape_;
  const Options& options_;
  size_t pitch_ = 0;
  size_t count_ = 0;
  size_t apart_ = 0;  // Rows.
  DeviceBuffer rows_;
  std::vector<std::byte> random_;
  std::vector<std::byte> query_;
  std::vector<DocumentScore> scores_;
  std::vector<QueryGroup> groups_;
};

// One call on one set: its launches and their memory.
struct Call {
  PinnedBuffer upload_host;
  DeviceBuffer upload;
  DeviceBuffer scores;
  DeviceBuffer partials;
  DeviceBuffer counters;
  BatchPlan plan;
  std::vector<Launch> launches;
};

class Runner {
 public:
  explicit Runner(const DeviceTraits& traits) : traits_(traits) { Check(stream_.Create()); }

  // Median microseconds per call.
  double Time(Sets& sets, const PlanOptions& options, double* error) {
    std::vector<std::unique_ptr<Call>> calls;
    for (size_t set = 0; set < sets.count(); ++set) calls.push_back(Prepare(sets, set, options));
    CheckCuda(cudaMemset(calls[0]->scores.data(), 0xff, calls[0]->scores.size()), "poison");
    Run(*calls[0]);
    CheckCuda(cudaStreamSynchronize(stream_.get()), "first call");
    *error = sets.Error(reinterpret_cast<const ScoreOut*>(calls[0]->scores.data()));
    return Replay(calls) / static_cast<double>(calls.size());
  }

 private:
  std::unique_ptr<Call> Prepare(Sets& sets, size_t set, const PlanOptions& options) {
    auto call = std::make_unique<Call>();
    std::vector<RowPlace> places(sets.groups().size(), sets.Place(set));
    call->plan.Make(sets.groups(), places, traits_, options);
    const BatchSizes& sizes = call->plan.sizes();
    Check(call->upload_host.Reserve(sizes.upload_bytes));
    Check(call->upload.Reserve(sizes.upload_bytes));
    Check(call->scores.Reserve(sizes.score_count * sizeof(ScoreOut)));
    Check(call->partials.Reserve(sizes.partial_count * sizeof(float)));
    Check(call->counters.Reserve(sizes.counter_count * sizeof(uint32_t)));
    CheckCuda(cudaMemset(call->counters.data(), 0, call->counters.size()), "counters");
    BatchMemory memory;
    memory.upload_host = call->upload_host.data();
    memory.upload = call->upload.data();
    memory.scores = reinterpret_cast<ScoreOut*>(call->scores.data());
    memory.partial_maxima = reinterpret_cast<float*>(call->partials.data());
    memory.counters = reinterpret_cast<uint32_t*>(call->counters.data());
    Check(call->plan.Write(memory, &call->launches));
    CheckCuda(cudaMemcpy(call->upload.data(), call->upload_host.data(), sizes.upload_bytes,
                         cudaMemcpyDefault),
              "upload");
    return call;
  }

  void Run(const Call& call) {
    for (const Launch& launch : call.launches) {
      CheckCuda(
          launch.config.kernel == Kernel::kSm90
              ? LaunchSm90(launch.config, launch.params, launch.maps, launch.blocks, stream_.get())
              : LaunchGeneric(launch.config, launch.params, launch.blocks, stream_.get()),
          "launch");
    }
  }

  double Replay(const std::vector<std::unique_ptr<Call>>& calls) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CheckCuda(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal), "capture");
    for (const auto& call : calls) Run(*call);
    CheckCuda(cudaStreamEndCapture(stream_.get(), &graph), "capture");
    CheckCuda(cudaGraphInstantiate(&executable, graph, 0), "graph");
    cudaEvent_t start;
    cudaEvent_t end;
    CheckCuda(cudaEventCreate(&start), "event");
    CheckCuda(cudaEventCreate(&end), "event");
    std::vector<float> times;
    for (int repeat = 0; repeat < kRepeats + 3; ++repeat) {
      CheckCuda(cudaEventRecord(start, stream_.get()), "event");
      CheckCuda(cudaGraphLaunch(executable, stream_.get()), "replay");
      CheckCuda(cudaEventRecord(end, stream_.get()), "event");
      CheckCuda(cudaEventSynchronize(end), "replay");
      float milliseconds = 0;
      CheckCuda(cudaEventElapsedTime(&milliseconds, start, end), "event");
      if (repeat >= 3) times.push_back(milliseconds * 1e3f);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  const DeviceTraits traits_;
  Stream stream_;
};

void Report(const Shape& shape, const Options& options, const std::string& peer, double us,
            double error) {
  const double bytes = static_cast<double>(shape.tokens) * shape.dim * ElementBytes(options.type);
  const double flops = 2.0 * static_cast<double>(shape.tokens) * shape.dim * shape.query_tokens;
  const double floor = std::max(bytes / options.read, flops / options.flops) * 1e6;
  std::printf("%s,%u,%u,%zu,%zu,%.2f,%s,%.2f,%.1e\n", shape.name.c_str(), shape.query_tokens,
              shape.dim, shape.documents.size(), shape.tokens, floor, peer.c_str(), us, error);
  std::fflush(stdout);
}

bool ReadOption(absl::string_view argument, Options* options) {
  const auto value = [&](absl::string_view name, std::string* text) {
    if (!absl::ConsumePrefix(&argument, name)) return false;
    *text = std::string(argument);
    return true;
  };
  std::string text;
  if (value("--type=", &text)) {
    for (const ElementType type :
         {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
      if (text == ElementTypeName(type)) options->type = type;
    }
    return true;
  }
  if (value("--read=", &text)) return options->read = std::atof(text.c_str()) * 1e12, true;
  if (value("--tflops=", &text)) return options->flops = std::atof(text.c_str()) * 1e12, true;
  if (value("--groups=", &text)) return options->groups = std::atoi(text.c_str()), true;
  if (value("--launch", &text)) return options->launch = true;
  if (value("--serial", &text)) return options->plan.overlap = false, true;
  return false;
}

int Main(int argc, char** argv) {
  Options options;
  std::vector<std::string> names;
  for (int i = 2; i < argc; ++i) {
    if (!ReadOption(argv[i], &options)) names.push_back(argv[i]);
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: maxsimd_cuda_bench SHAPES_FOLDER [options] [SHAPE...]\n");
    return 2;
  }
  if (options.launch) {
    for (const int loads : {0, 1, 2, 3}) {
      std::printf("launch with %d loads in a chain: %.2f us\n", loads,
                  MeasureLaunchMicroseconds(loads));
    }
    return 0;
  }
  if (names.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
    }
    std::sort(names.begin(), names.end());
  }
  if (options.read == 0) options.read = MeasureReadBandwidth();
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, 0), "device");
  CheckCuda(PrepareGeneric(), "kernels");
  DeviceTraits traits;
  traits.multiprocessors = properties.multiProcessorCount;
  traits.overlaps_launches = properties.major >= 9;
  traits.has_sm90_kernels = properties.major == 9 && PrepareSm90() == cudaSuccess;
  std::printf("# %s, read %.2f TB/s, fp16 %.0f TFLOP/s, %s\n", properties.name, options.read / 1e12,
              options.flops / 1e12, std::string(ElementTypeName(options.type)).c_str());
  std::printf("shape,query_tokens,dim,documents,tokens,floor_us,peer,us,error\n");
  Runner runner(traits);
  for (const std::string& name : names) {
    const Shape shape = ReadShape(std::filesystem::path(argv[1]) / absl::StrCat(name, ".txt"));
    Sets sets(shape, options);
    double error = 0;
    const double us = runner.Time(sets, options.plan, &error);
    Report(shape, options, options.plan.overlap ? "maxsimd" : "maxsimd_serial", us, error);
  }
  return 0;
}

}  // namespace
}  // namespace maxsimd::cuda

int main(int argc, char** argv) {
  return maxsimd::cuda::Main(argc, argv);
}
