// `maxsimd-cli bench`: what a server can take, in a closed or an open loop.
//
// The messages are encoded once and sent again and again; calls run on gRPC's callback threads, so
// that thousands may be under way.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/load_generator.h"
#include "client/cli/random_input.h"
#include "client/message_encoder.h"
#include "client/rerank_client.h"
#include "client/score_call.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

// One call's messages, ready to be sent any number of times.
struct EncodedCall {
  bool stream = false;
  std::vector<grpc::ByteBuffer> messages;
  uint64_t bytes = 0;
  size_t documents = 0;
};

EncodedCall Encode(const RerankInput& input, const PlannedCall& plan) {
  EncodedCall call{
      .stream = plan.stream, .messages = {}, .bytes = 0, .documents = input.lengths.size()};
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const Chunk& chunk = plan.chunks[i];
    const MessageParts parts = !plan.stream ? EncodeRequest(input, chunk)
                               : i == 0     ? EncodeStreamStart(input, chunk)
                                            : EncodeStreamDocuments(input, chunk);
    call.bytes += TotalBytes(parts);
    call.messages.push_back(ToByteBuffer(parts, input.owner));
  }
  return call;
}

std::string ErrorWord(const CallOutcome& outcome, const EncodedCall& call) {
  if (!outcome.status.ok()) {
    return absl::StatusCodeToString(static_cast<absl::StatusCode>(outcome.status.error_code()));
  }
  return outcome.documents.size() == call.documents ? "" : "WRONG_RESULT";
}

class BenchCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App* app) override {
    CLI::App* parser = app->add_subcommand("bench", "Measures latency and throughput under load");
    CLI::Option* concurrency =
        parser->add_option("--concurrency", concurrency_, "Closed loop: calls always under way")
            ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
            ->capture_default_str();
    CLI::Option* rate =
        parser->add_option("--rate", rate_, "Open loop: calls a second, Poisson arrivals")
            ->check(IsPositiveNumber())
            ->excludes(concurrency);
    parser->add_option("--calls", calls_, "Closed loop: so many calls, instead of --duration")
        ->check(CLI::Range(int64_t{1}, int64_t{INT64_MAX}))
        ->excludes(rate);
    parser->add_option("--duration", duration_, "Of what is measured")
        ->check(IsDuration())
        ->capture_default_str();
    parser->add_option("--warm-up", warm_up_, "Before it")
        ->check(IsDurationOrNone())
        ->capture_default_str();
    parser->add_option("--connections", connections_, "Calls take turns on them")
        ->check(CLI::Range(int64_t{1}, int64_t{10'000}))
        ->capture_default_str();
    parser->add_option("--rpc", rpc_, "unary (Rerank) or stream (RerankStream)")
        ->check(CLI::IsMember({"unary", "stream"}))
        ->capture_default_str();
    parser->add_option("--chunk-bytes", chunk_bytes_, "Of a stream's message, about")
        ->check(CLI::Range(int64_t{1024}, int64_t{1} << 31))
        ->capture_default_str();
    shape_.AddTo(parser);
    return parser;
  }

  absl::Status Run(const CommonOptions& common, const Output& output) override {
    const std::unique_ptr<RandomInput> random = MakeRandomInput(shape_);
    ASSIGN_OR_RETURN(const EncodedCall call, PlanOne(common, random->input));
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (int64_t i = 0; i < connections_; ++i) {
      channels.push_back(Connect(common.target));
      channels.back()->GetState(/*try_to_connect=*/true);
    }
    std::atomic<uint64_t> next_channel = 0;
    const absl::Duration timeout = common.timeout_duration();
    const LoadStart start = [&](LoadDone done) {
      CallMessages messages{.stream = call.stream,
                            .count = call.messages.size(),
                            .message = [&](size_t i) { return call.messages[i]; }};
      StartScoreCall(channels[next_channel++ % channels.size()], std::move(messages), timeout,
                     [&call, done = std::move(done)](const CallOutcome& outcome) {
                       done(ErrorWord(outcome, call));
                     });
    };
    const LoadRecord record = RunLoad(Plan(), start, Progress(output));
    Print(common, call, record, output);
    if (record.succeeded() > 0) return absl::OkStatus();
    return absl::UnavailableError(
        record.failed() == 0 ? std::string("no call was due: --duration is too short for the rate")
                             : absl::StrCat("none of ", record.failed(),
                                            " calls succeeded: ", record.errors().begin()->first));
  }

 private:
  LoadPlan Plan() const {
    LoadPlan plan{.concurrency = concurrency_,
                  .rate = rate_,
                  .seed = static_cast<uint64_t>(shape_.seed),
                  .warm_up = absl::ZeroDuration(),
                  .duration = absl::ZeroDuration(),
                  .calls = static_cast<uint64_t>(calls_)};
    absl::ParseDuration(warm_up_, &plan.warm_up);  // Checked by the parser.
    absl::ParseDuration(duration_, &plan.duration);
    return plan;
  }

  // The one call that all the load is made of.
  absl::StatusOr<EncodedCall> PlanOne(const CommonOptions& common, const RerankInput& input) const {
    RerankClient client(Connect(common.target));
    ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info,
                     client.Info({.timeout = common.timeout_duration()}));
    const PlanOptions options{.rpc = rpc_ == "unary" ? RpcChoice::kUnary : RpcChoice::kStream,
                              .target_bytes = static_cast<uint64_t>(chunk_bytes_)};
    ASSIGN_OR_RETURN(const std::vector<PlannedCall> calls,
                     PlanCalls(LayoutOf(input), info.limits(), StartBytes(input), options));
    if (calls.size() == 1) return Encode(input, calls[0]);
    return absl::ResourceExhaustedError(
        absl::StrCat("the shape takes ", calls.size(), " ", rpc_,
                     " calls by the server's limits; bench measures one at a time"));
  }

  static LoadProgress Progress(const Output& output) {
    if (!output.terminal.progress) return [](absl::Duration, uint64_t) {};
    return [&err = output.err](absl::Duration since_start, uint64_t ended) {
      err << absl::StrFormat("\r%.0f s, %d calls", absl::ToDoubleSeconds(since_start), ended)
          << std::flush;
    };
  }

  void Print(const CommonOptions& common, const EncodedCall& call, const LoadRecord& record,
             const Output& output) const {
    if (output.terminal.progress) output.err << "\r\033[K" << std::flush;
    const double seconds = absl::ToDoubleSeconds(record.elapsed());
    const double calls_per_s = static_cast<double>(record.succeeded()) / seconds;
    const LatencySummary latency = record.latency_ms();
    Json json;
    json["loop"] = rate_ > 0 ? "open" : "closed";
    if (rate_ > 0) {
      json["rate"] = rate_;
    } else {
      json["concurrency"] = concurrency_;
    }
    json["rpc"] = rpc_;
    json["connections"] = connections_;
    json["messages_per_call"] = call.messages.size();
    json["bytes_per_call"] = call.bytes;
    json["documents_per_call"] = call.documents;
    json["seconds"] = seconds;
    json["succeeded"] = record.succeeded();
    json["failed"] = record.failed();
    json["calls_per_s"] = calls_per_s;
    json["documents_per_s"] = calls_per_s * static_cast<double>(call.documents);
    json["bytes_per_s"] = calls_per_s * static_cast<double>(call.bytes);
    json["latency_ms"] = {{"mean", latency.mean}, {"p50", latency.p50},    {"p90", latency.p90},
                          {"p99", latency.p99},   {"p99.9", latency.p999}, {"max", latency.max}};
    json["errors"] = Json::object();
    for (const auto& [error, count] : record.errors()) json["errors"][error] = count;
    output.out << (common.json() ? JsonText(json) : AsTable(json));
  }

  static std::string AsTable(const Json& json) {
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const std::string& name, const Json& value) {
      if (value.is_string()) {
        rows.push_back({name, value.get<std::string>()});
      } else if (value.is_number_float()) {
        rows.push_back({name, absl::StrFormat("%.6g", value.get<double>())});
      } else {
        rows.push_back({name, value.dump()});
      }
    };
    for (const auto& [name, value] : json.items()) {
      if (!value.is_object()) {
        add(name, value);
        continue;
      }
      for (const auto& [part, part_value] : value.items()) {
        add(absl::StrCat(name, " ", part), part_value);
      }
    }
    return Table({{"what", false}, {"value", true}}, rows);
  }

  InputShape shape_;
  int64_t concurrency_ = 8;
  double rate_ = 0;
  int64_t calls_ = 0;
  std::string duration_ = "10s";
  std::string warm_up_ = "1s";
  int64_t connections_ = 1;
  std::string rpc_ = "unary";
  int64_t chunk_bytes_ = kTargetChunkBytes;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() {
  return std::make_unique<BenchCommand>();
}

}  // namespace maxsimd
