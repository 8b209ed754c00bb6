#include "client/cli/rerank_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include <google/protobuf/util/time_util.h>

namespace maxsimd {
namespace {

// Below this many columns a text says nothing; then lines are left to wrap.
constexpr size_t kMinTextColumns = 20;

// Of the query token that adds most to the score; wide enough to tell a twentieth of it.
constexpr size_t kLongestBar = 20;

std::string ScoreText(const v1::ScoredDocument& document) {
  if (document.status() == v1::DOCUMENT_STATUS_SCORED) return FloatText(document.score());
  return absl::StrCat(FloatText(document.score()), " (", StatusText(document.status()), ")");
}

// As many blocks as `value` is of `largest`; none for what adds nothing to a score or takes from
// it.
std::string Bar(double value, double largest) {
  std::string bar;
  if (!(value > 0)) return bar;
  const long blocks = std::lround(value / largest * static_cast<double>(kLongestBar));
  for (long i = 0; i < blocks; ++i) bar += "\u2588";
  return bar;
}

Json TimingsJson(const v1::Timings& timings) {
  const auto milliseconds = [](const google::protobuf::Duration& duration) {
    return static_cast<double>(google::protobuf::util::TimeUtil::DurationToMicroseconds(duration)) /
           1000;
  };
  Json json;
  json["total_ms"] = milliseconds(timings.total());
  json["receive_ms"] = milliseconds(timings.receive());
  json["queue_ms"] = milliseconds(timings.queue());
  json["pack_ms"] = milliseconds(timings.pack());
  json["upload_ms"] = milliseconds(timings.upload());
  json["compute_ms"] = milliseconds(timings.compute());
  json["batches"] = timings.batches();
  return json;
}

}  // namespace

std::string RerankReport::AsTable(size_t columns) const {
  std::vector<TableColumn> titles = {{"rank", true}, {"index", true}};
  const bool ids = !loaded.ids.empty();
  if (ids) titles.push_back({"id", false});
  titles.push_back({"score", true});
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < result.documents.size(); ++i) {
    const v1::ScoredDocument& document = result.documents[i];
    rows.push_back({absl::StrCat(i + 1), absl::StrCat(document.index())});
    if (ids) rows.back().push_back(Trim(document.id(), document.id().size()));
    rows.back().push_back(ScoreText(document));
  }
  if (!texts.empty()) {
    size_t room = std::string::npos;
    if (columns > 0) {  // The table so far is as wide as its widest line, and two spaces follow.
      const std::string narrow = Table(titles, rows);
      size_t widest = 0;
      for (size_t begin = 0; begin < narrow.size();) {
        const size_t end = narrow.find('\n', begin);
        widest = std::max(widest, DisplayWidth(narrow.substr(begin, end - begin)));
        begin = end + 1;
      }
      room = std::max(columns, widest + 2 + kMinTextColumns) - widest - 2;
    }
    titles.push_back({"text", false});
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].push_back(Trim(texts[result.documents[i].index()], room));
    }
  }
  return Table(titles, rows) + (explain ? ExplainBest() : "");
}

std::string RerankReport::ExplainBest() const {
  if (result.documents.empty() || result.documents[0].matches().empty()) return "";
  const v1::ScoredDocument& best = result.documents[0];
  const uint64_t first_row = loaded.first_rows[best.index()];
  std::vector<double> parts;  // What each query token adds to the score.
  for (int i = 0; i < best.matches_size(); ++i) {
    const double weight = loaded.weights.empty() ? 1 : loaded.weights[i];
    parts.push_back(weight * best.matches(i).similarity());
  }
  const double largest = *std::max_element(parts.begin(), parts.end());
  std::vector<std::vector<std::string>> rows;
  for (int i = 0; i < best.matches_size(); ++i) {
    const v1::TokenMatch& match = best.matches(i);
    rows.push_back({absl::StrCat(i), query_tokens.Find(query_index, loaded.query_first_row, i),
                    absl::StrCat(match.document_token()),
                    document_tokens.Find(best.index(), first_row, match.document_token()),
                    FloatText(match.similarity())});
    if (!loaded.weights.empty()) rows.back().push_back(FloatText(loaded.weights[i]));
    rows.back().push_back(Bar(parts[i], largest));
  }
  std::vector<TableColumn> titles = {{"query", true},
                                     {"token", false},
                                     {"document", true},
                                     {"token", false},
                                     {"similarity", true}};
  if (!loaded.weights.empty()) titles.push_back({"weight", true});
  titles.push_back({"part of the score", false});
  return absl::StrCat("\nWhy document ", best.index(),
                      " is first: what each query token matched in it\n", Table(titles, rows));
}

Json RerankReport::MatchesJson(const v1::ScoredDocument& document) const {
  Json matches = Json::array();
  const uint64_t first_row = loaded.first_rows[document.index()];
  for (int i = 0; i < document.matches_size(); ++i) {
    const v1::TokenMatch& match = document.matches(i);
    Json entry;
    entry["query_token"] = i;
    entry["document_token"] = match.document_token();
    entry["similarity"] = JsonFloat(match.similarity());
    if (!query_tokens.lists.empty()) {
      entry["query_text"] = query_tokens.Find(query_index, loaded.query_first_row, i);
    }
    if (!document_tokens.lists.empty()) {
      entry["document_text"] =
          document_tokens.Find(document.index(), first_row, match.document_token());
    }
    matches.push_back(std::move(entry));
  }
  return matches;
}

std::string RerankReport::AsJson() const {
  Json results = Json::array();
  for (size_t i = 0; i < result.documents.size(); ++i) {
    const v1::ScoredDocument& document = result.documents[i];
    Json entry;
    entry["rank"] = i + 1;
    entry["index"] = document.index();
    if (!loaded.ids.empty()) entry["id"] = document.id();
    entry["score"] = JsonFloat(document.score());
    entry["status"] = StatusText(document.status());
    if (!texts.empty()) entry["text"] = texts[document.index()];
    if (explain) entry["matches"] = MatchesJson(document);
    results.push_back(std::move(entry));
  }
  Json json;
  json["results"] = std::move(results);
  json["documents"] = result.summary.documents();
  json["document_tokens"] = result.summary.document_tokens();
  json["timings"] = TimingsJson(result.summary.timings());
  return JsonText(json);
}

}  // namespace maxsimd
