// `maxsimd-cli smoke`: random data over both RPCs, every score held against the float64 oracle.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/random_input.h"
#include "client/rerank_client.h"
#include "kernels/reference/reference_scorer.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

std::vector<ReferenceDocument> OracleScores(const InputShape& shape, const RandomInput& random) {
  std::vector<DocumentRows> documents;
  uint64_t first_row = 0;
  for (uint32_t length : random.lengths) {
    documents.push_back({first_row, length});
    first_row += length;
  }
  const RerankInput& input = random.input;
  QueryGroup group;
  group.query.element_type = group.element_type = shape.kernel_element_type();
  group.query.tokens = static_cast<uint32_t>(shape.query_tokens);
  group.query.dim = static_cast<uint32_t>(shape.dim);
  group.query.data = reinterpret_cast<const std::byte*>(input.query.data.data());
  group.rows = reinterpret_cast<const std::byte*>(input.documents.data.data());
  group.row_pitch_bytes = static_cast<size_t>(RowBytes(input.documents));
  group.row_count = first_row;
  group.documents = documents;
  return ReferenceScores(group);
}

v1::DocumentStatus WireStatus(DocumentStatus status) {
  switch (status) {
    case DocumentStatus::kScored:
      return v1::DOCUMENT_STATUS_SCORED;
    case DocumentStatus::kEmpty:
      return v1::DOCUMENT_STATUS_EMPTY;
    case DocumentStatus::kNonFinite:
      return v1::DOCUMENT_STATUS_NON_FINITE;
  }
  return v1::DOCUMENT_STATUS_UNSPECIFIED;
}

// How one RPC did.
struct Comparison {
  std::string rpc;
  uint64_t wrong = 0;
  std::string first_wrong;  // For people.
  double max_error = 0;
  double max_of_bound = 0;  // The largest error as a part of what is allowed.
};

void Compare(const std::vector<ReferenceDocument>& exact, const RerankResult& result,
             Comparison* comparison) {
  for (const v1::ScoredDocument& document : result.documents) {
    const ReferenceDocument& right = exact[document.index()];
    double error = 0;
    if (right.status == DocumentStatus::kScored) {
      error = std::abs(static_cast<double>(document.score()) - right.score);
      comparison->max_error = std::max(comparison->max_error, error);
      comparison->max_of_bound = std::max(comparison->max_of_bound, error / right.bound);
    }
    const bool status_right = document.status() == WireStatus(right.status);
    if (status_right && error <= right.bound) continue;
    if (++comparison->wrong > 1) continue;
    comparison->first_wrong =
        absl::StrCat("document ", document.index(), " scored ", FloatText(document.score()), " (",
                     StatusText(document.status()), "), expected ",
                     absl::StrFormat("%.9g within %.3g", right.score, right.bound), " (",
                     StatusText(WireStatus(right.status)), ")");
  }
}

bool SameBits(const RerankResult& a, const RerankResult& b) {
  return std::equal(a.documents.begin(), a.documents.end(), b.documents.begin(), b.documents.end(),
                    [](const auto& x, const auto& y) {
                      const float scores[2] = {x.score(), y.score()};
                      return std::memcmp(&scores[0], &scores[1], sizeof(float)) == 0;
                    });
}

class SmokeCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App* app) override {
    CLI::App* parser =
        app->add_subcommand("smoke", "Compares scores of random data with the right ones");
    shape_.AddTo(parser);
    return parser;
  }

  absl::Status Run(const CommonOptions& common, const Output& output) override {
    const std::unique_ptr<RandomInput> random = MakeRandomInput(shape_);
    RerankClient client(Connect(common.target));
    const std::vector<ReferenceDocument> exact = OracleScores(shape_, *random);
    std::vector<Comparison> comparisons;
    std::vector<RerankResult> results;
    for (const RpcChoice rpc : {RpcChoice::kUnary, RpcChoice::kStream}) {
      // Small chunks, so that small data make a stream of several messages too.
      const CallOptions options{.timeout = common.timeout_duration(),
                                .plan = {.rpc = rpc, .target_bytes = 256 << 10}};
      // The library finds out documents that are missing or come twice.
      ASSIGN_OR_RETURN(RerankResult result, client.Rerank(random->input, options));
      comparisons.push_back({.rpc = rpc == RpcChoice::kUnary ? "Rerank" : "RerankStream",
                             .wrong = 0,
                             .first_wrong = ""});
      Compare(exact, result, &comparisons.back());
      results.push_back(std::move(result));
    }
    const bool same_bits = SameBits(results[0], results[1]);
    Print(common, comparisons, same_bits, output);
    for (const Comparison& comparison : comparisons) {
      if (comparison.wrong == 0) continue;
      return absl::InternalError(absl::StrCat(comparison.rpc, ": ", comparison.wrong, " of ",
                                              exact.size(),
                                              " scores are wrong: ", comparison.first_wrong));
    }
    if (same_bits) return absl::OkStatus();
    return absl::InternalError("Rerank and RerankStream differ in the bits of a score");
  }

 private:
  void Print(const CommonOptions& common, const std::vector<Comparison>& comparisons,
             bool same_bits, const Output& output) const {
    Json json;
    json["documents"] = shape_.documents;
    json["same_bits"] = same_bits;
    std::vector<std::vector<std::string>> rows;
    for (const Comparison& comparison : comparisons) {
      json["rpcs"].push_back({{"rpc", comparison.rpc},
                              {"wrong", comparison.wrong},
                              {"max_error", comparison.max_error},
                              {"max_error_of_bound", comparison.max_of_bound}});
      rows.push_back({comparison.rpc, absl::StrCat(shape_.documents),
                      absl::StrCat(comparison.wrong), absl::StrFormat("%.3g", comparison.max_error),
                      absl::StrFormat("%.2f%%", 100 * comparison.max_of_bound)});
    }
    output.out << (common.json() ? JsonText(json)
                                 : Table({{"rpc", false},
                                          {"documents", true},
                                          {"wrong", true},
                                          {"max error", true},
                                          {"of the bound", true}},
                                         rows));
  }

  InputShape shape_;
};

}  // namespace

std::unique_ptr<Command> MakeSmokeCommand() {
  return std::make_unique<SmokeCommand>();
}

}  // namespace maxsimd
