#include "client/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

using Json = nlohmann::json;

// A parsed header takes up to 20 times its bytes; thousands of tensors need less than 1 MiB.
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;

absl::Status Malformed(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": not a .safetensors file that can be read: ", what));
}

std::optional<TensorType> TypeOf(absl::string_view dtype) {
  if (dtype == "F32") return TensorType::kFloat32;
  if (dtype == "F16") return TensorType::kFloat16;
  if (dtype == "BF16") return TensorType::kBfloat16;
  if (dtype == "U16") return TensorType::kUint16;
  if (dtype == "I32") return TensorType::kInt32;
  if (dtype == "U32") return TensorType::kUint32;
  if (dtype == "I64") return TensorType::kInt64;
  if (dtype == "U64") return TensorType::kUint64;
  return std::nullopt;
}

std::optional<std::vector<uint64_t>> UnsignedList(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<uint64_t> values;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned()) return std::nullopt;
    values.push_back(value.get<uint64_t>());
  }
  return values;
}

// The header as JSON; discarded (is_discarded()) where it is none, or has a key twice.
Json ParseHeader(absl::string_view header) {
  std::vector<std::set<std::string>> keys;  // Of each object that is open.
  bool repeated = false;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      repeated |= !keys.back().insert(parsed.get<std::string>()).second;
    }
    return true;
  };
  Json json = Json::parse(header.begin(), header.end(), watch, /*allow_exceptions=*/false);
  if (repeated) return Json(Json::value_t::discarded);
  return json;
}

struct Range {
  uint64_t begin;
  uint64_t end;
};

// One entry of the header: where its data lie, and the tensor, if its type is one of ours.
absl::StatusOr<Range> ReadEntry(const std::string& tensor_name, const Json& entry,
                                absl::string_view data, absl::string_view file_name,
                                TensorMap* tensors) {
  const std::string name = absl::StrCat(file_name, ", tensor ", tensor_name);
  if (!entry.is_object()) return Malformed(name, "expected an object in the header");
  const auto dtype = entry.find("dtype");
  const auto shape = UnsignedList(entry, "shape");
  const auto offsets = UnsignedList(entry, "data_offsets");
  if (dtype == entry.end() || !dtype->is_string() || !shape.has_value() || !offsets.has_value() ||
      offsets->size() != 2) {
    return Malformed(name, "expected dtype, shape and two data_offsets, none negative");
  }
  const Range range{(*offsets)[0], (*offsets)[1]};
  if (range.begin > range.end || range.end > data.size()) {
    return Malformed(name, absl::StrCat("expected data_offsets within the ", data.size(),
                                        " bytes of data, found ", ShapeText(*offsets)));
  }
  const std::optional<TensorType> type = TypeOf(dtype->get<std::string>());
  if (!type.has_value()) return range;
  ASSIGN_OR_RETURN(const uint64_t bytes, ShapeBytes(*type, *shape, name));
  if (bytes != range.end - range.begin) {
    return Malformed(name, absl::StrCat("expected ", bytes, " bytes of data for shape ",
                                        ShapeText(*shape), ", found ", range.end - range.begin));
  }
  tensors->emplace(tensor_name, TensorView{name, *type, *shape, data.substr(range.begin, bytes)});
  return range;
}

absl::Status CheckRangesFill(std::vector<Range> ranges, uint64_t data_bytes,
                             absl::string_view name) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Range& range : ranges) {
    if (range.begin < end) return Malformed(name, "two tensors overlap");
    if (range.begin > end) return Malformed(name, "bytes between two tensors belong to none");
    end = range.end;
  }
  if (end == data_bytes) return absl::OkStatus();
  return Malformed(name, absl::StrCat("expected ", end, " bytes of data, found ", data_bytes));
}

}  // namespace

absl::StatusOr<TensorMap> ParseSafetensors(absl::string_view file, absl::string_view name) {
  if (file.size() < 8) return Malformed(name, "it ends within the header's length");
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | static_cast<uint8_t>(file[i]);
  if (header_bytes > kMaxHeaderBytes) {
    return Malformed(name, absl::StrCat("expected a header of at most ", kMaxHeaderBytes,
                                        " bytes, found ", header_bytes));
  }
  if (file.size() - 8 < header_bytes) return Malformed(name, "it ends within the header");
  const Json header = ParseHeader(file.substr(8, header_bytes));
  if (!header.is_object()) {
    return Malformed(name, "expected a header that is a JSON object without repeated keys");
  }
  const absl::string_view data = file.substr(8 + header_bytes);
  TensorMap tensors;
  std::vector<Range> ranges;
  for (const auto& [tensor_name, entry] : header.items()) {
    if (tensor_name == "__metadata__") continue;
    ASSIGN_OR_RETURN(const Range range, ReadEntry(tensor_name, entry, data, name, &tensors));
    ranges.push_back(range);
  }
  RETURN_IF_ERROR(CheckRangesFill(std::move(ranges), data.size(), name));
  return tensors;
}

}  // namespace maxsimd
