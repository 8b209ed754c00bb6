#include "client/cli/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/strip.h"

namespace maxsimd {
namespace {

bool Continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

std::string FloatText(float value) {
  if (std::isnan(value)) return "nan";
  char text[32];  // The longest float takes 15.
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

Json JsonFloat(float value) {
  if (!std::isfinite(value)) return nullptr;
  // The library writes doubles: the one that is nearest to the float's own digits has the same.
  return std::strtod(FloatText(value).c_str(), nullptr);
}

std::string StatusText(v1::DocumentStatus status) {
  return std::string(absl::StripPrefix(v1::DocumentStatus_Name(status), "DOCUMENT_STATUS_"));
}

size_t DisplayWidth(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return !Continues(byte); });
}

std::string Trim(absl::string_view text, size_t columns) {
  std::string line(text);
  for (char& byte : line) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) byte = ' ';
  }
  if (DisplayWidth(line) <= columns) return line;
  if (columns == 0) return "";
  size_t end = 0;
  for (size_t width = 0; end < line.size(); ++end) {
    if (!Continues(line[end]) && ++width == columns) break;
  }
  return line.substr(0, end) + "…";
}

std::string Table(const std::vector<TableColumn>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const TableColumn& column : columns) widths.push_back(DisplayWidth(column.title));
  for (const std::vector<std::string>& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], DisplayWidth(row[c]));
  }
  std::string table;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - DisplayWidth(row[c]), ' ');
      if (c > 0) line += "  ";
      line += columns[c].right ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  };
  std::vector<std::string> titles;
  for (const TableColumn& column : columns) titles.push_back(column.title);
  append(titles);
  for (const std::vector<std::string>& row : rows) append(row);
  return table;
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace maxsimd
