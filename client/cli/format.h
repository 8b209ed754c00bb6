// Text and JSON for results: numbers that read back to the same bits, and tables.  Pure.
#ifndef MAXSIMD_CLIENT_CLI_FORMAT_H_
#define MAXSIMD_CLIENT_CLI_FORMAT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

#include "maxsimd/v1/rerank.pb.h"

namespace maxsimd {

using Json = nlohmann::ordered_json;

// The fewest digits that read back to the same float; "-inf", "inf", "nan".
std::string FloatText(float value);

// A number of those digits; null for what JSON has no number for.
Json JsonFloat(float value);

// "SCORED", "EMPTY", "NON_FINITE".
std::string StatusText(v1::DocumentStatus status);

// The first `columns` characters of one line of text, with an ellipsis where some are left out;
// cuts between characters of UTF-8 (each counted as one column).  Control characters become spaces.
std::string Trim(absl::string_view text, size_t columns);

// Characters of UTF-8.
size_t DisplayWidth(absl::string_view text);

struct TableColumn {
  std::string title;
  bool right = false;  // Aligned to the right, as numbers are.
};

// One line per row, titles first, two spaces between columns, nothing behind the last.
std::string Table(const std::vector<TableColumn>& columns,
                  const std::vector<std::vector<std::string>>& rows);

// With invalid UTF-8 replaced, so that it is JSON whatever ids hold.
std::string JsonText(const Json& json);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_FORMAT_H_
