#include "client/cli/text_files.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

#include "client/tensor_file.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

std::vector<std::string> SplitLines(absl::string_view text) {
  std::vector<std::string> lines;
  if (text.empty()) return lines;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    lines.emplace_back(absl::StripSuffix(line, "\r"));
  }
  return lines;
}

// A token may begin with a bracket too, as [CLS] does: JSON goes on with a string, an array or an
// end.
bool LooksLikeJson(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "[")) return false;
  text = absl::StripLeadingAsciiWhitespace(text);
  return !text.empty() && (text[0] == '"' || text[0] == '[' || text[0] == ']');
}

std::optional<std::vector<std::string>> StringList(const nlohmann::json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<std::string> strings;
  for (const nlohmann::json& element : json) {
    if (!element.is_string()) return std::nullopt;
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

std::optional<TokenStrings> FromJson(const nlohmann::json& json) {
  if (std::optional<std::vector<std::string>> flat = StringList(json); flat.has_value()) {
    return TokenStrings{.nested = false, .lists = {*std::move(flat)}};
  }
  if (!json.is_array()) return std::nullopt;
  TokenStrings tokens{.nested = true, .lists = {}};
  for (const nlohmann::json& element : json) {
    std::optional<std::vector<std::string>> list = StringList(element);
    if (!list.has_value()) return std::nullopt;
    tokens.lists.push_back(*std::move(list));
  }
  return tokens;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MapFile(path));
  return SplitLines(file.bytes);
}

absl::StatusOr<std::vector<std::string>> ReadLinesPerDocument(const std::string& path,
                                                              size_t documents) {
  ASSIGN_OR_RETURN(std::vector<std::string> lines, ReadLines(path));
  if (lines.size() == documents) return lines;
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected one line for each of ",
                                                 documents, " documents, found ", lines.size()));
}

std::string TokenStrings::Find(size_t index, size_t first_row, size_t token) const {
  const size_t list = nested ? index : 0;
  const size_t position = nested ? token : first_row + token;
  if (list >= lists.size() || position >= lists[list].size()) return "";
  return lists[list][position];
}

absl::StatusOr<TokenStrings> ReadTokenStrings(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MapFile(path));
  if (LooksLikeJson(file.bytes)) {
    const auto json = nlohmann::json::parse(file.bytes.begin(), file.bytes.end(), nullptr, false);
    if (std::optional<TokenStrings> tokens = FromJson(json); tokens.has_value()) {
      return *std::move(tokens);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a JSON array of strings, or of arrays of strings"));
  }
  return TokenStrings{.nested = false, .lists = {SplitLines(file.bytes)}};
}

}  // namespace maxsimd
