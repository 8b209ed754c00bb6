// `maxsimd-cli rerank`: ranks the documents of files.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "client/cli/command.h"
#include "client/cli/input_files.h"
#include "client/cli/rerank_report.h"
#include "client/cli/text_files.h"
#include "client/rerank_client.h"
#include "client/result_merger.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

class RerankCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App* app) override {
    CLI::App* parser =
        app->add_subcommand("rerank", "Ranks documents for a query, from .npy or .safetensors");
    AddInputs(parser);
    AddScoring(parser);
    AddReport(parser);
    return parser;
  }

  absl::Status Run(const CommonOptions& common, const Output& output) override {
    paths_.element_type = ElementTypeFromName(element_type_);
    paths_.query_index = static_cast<uint64_t>(query_index_);
    ASSIGN_OR_RETURN(const std::unique_ptr<LoadedInput> loaded, LoadInput(paths_));
    loaded->input.options.set_top_k(static_cast<uint32_t>(top_k_));
    loaded->input.options.set_normalize(normalize_);
    loaded->input.options.set_aggregation(aggregation_ == "mean" ? v1::AGGREGATION_MEAN
                                                                 : v1::AGGREGATION_SUM);
    loaded->input.options.set_return_matches(explain_);
    // Before the call, so that a mistake in them doesn't cost one.
    RerankReport report{.loaded = *loaded,
                        .query_index = paths_.query_index,
                        .result = {},
                        .texts = {},
                        .query_tokens = {},
                        .document_tokens = {},
                        .explain = explain_};
    RETURN_IF_ERROR(ReadTexts(loaded->lengths.size(), &report));

    RerankClient client(Connect(common.target));
    ASSIGN_OR_RETURN(report.result,
                     client.Rerank(loaded->input, {.timeout = common.timeout_duration()}));
    if (top_k_ == 0) {
      std::sort(report.result.documents.begin(), report.result.documents.end(), RanksBefore);
    }
    output.out << (common.json() ? report.AsJson()
                                 : report.AsTable(static_cast<size_t>(output.terminal.columns)));
    return absl::OkStatus();
  }

 private:
  void AddInputs(CLI::App* parser) {
    parser->add_option("--query", paths_.query, "[tokens, dim], or several queries")->required();
    parser->add_option("--query-index", query_index_, "Which of several queries, from 0")
        ->check(CLI::Range(int64_t{0}, int64_t{UINT32_MAX}));
    parser->add_option("--documents", paths_.documents, "[rows, dim] or [documents, tokens, dim]")
        ->required();
    parser->add_option("--lengths", paths_.lengths, "Tokens of each document");
    parser->add_option("--offsets", paths_.offsets, "First row of each document");
    parser->add_option("--weights", paths_.weights, "One per query token");
    parser->add_option("--ids", paths_.ids, "One per line and document");
    parser->add_option("--element-type", element_type_, "What files hold; needed for bfloat16 .npy")
        ->check(IsElementType());
  }

  void AddScoring(CLI::App* parser) {
    parser->add_option("--top-k", top_k_, "How many of the best; 0: all")
        ->check(CLI::Range(int64_t{0}, int64_t{UINT32_MAX}));
    parser->add_flag("--normalize", normalize_, "Divide rows by their norm (cosine similarity)");
    parser->add_option("--aggregation", aggregation_, "sum or mean")
        ->check(CLI::IsMember({"sum", "mean"}))
        ->capture_default_str();
  }

  void AddReport(CLI::App* parser) {
    parser->add_option("--text", text_, "Text of each document, one per line");
    CLI::Option* explain = parser->add_flag("--explain", explain_,
                                            "Show which document token each query token matched");
    parser->add_option("--query-tokens", query_tokens_, "Token strings: JSON, or one per line")
        ->needs(explain);
    parser->add_option("--document-tokens", document_tokens_, "As --query-tokens")->needs(explain);
  }

  absl::Status ReadTexts(size_t documents, RerankReport* report) const {
    if (!text_.empty()) {
      ASSIGN_OR_RETURN(report->texts, ReadLinesPerDocument(text_, documents));
    }
    if (!query_tokens_.empty()) {
      ASSIGN_OR_RETURN(report->query_tokens, ReadTokenStrings(query_tokens_));
    }
    if (!document_tokens_.empty()) {
      ASSIGN_OR_RETURN(report->document_tokens, ReadTokenStrings(document_tokens_));
    }
    return absl::OkStatus();
  }

  InputPaths paths_;
  std::string element_type_;
  int64_t query_index_ = 0;
  int64_t top_k_ = 0;
  bool normalize_ = false;
  std::string aggregation_ = "sum";
  std::string text_;
  bool explain_ = false;
  std::string query_tokens_;
  std::string document_tokens_;
};

}  // namespace

std::unique_ptr<Command> MakeRerankCommand() {
  return std::make_unique<RerankCommand>();
}

}  // namespace maxsimd
