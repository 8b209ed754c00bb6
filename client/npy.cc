#include "client/npy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

// NumPy reads headers of up to 10,000 bytes unless told that a file is trusted.
constexpr uint64_t kMaxHeaderBytes = 10'000;
constexpr size_t kMaxDimensions = 32;  // NumPy's own.

absl::Status Malformed(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": not a .npy file that can be read: ", what));
}

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

// The Python literal of a header, which is a dict: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : text_(text) {}

  bool Read() {
    if (!Take('{')) return false;
    while (!Take('}')) {
      if (!ReadEntry()) return false;
      if (!Take(',') && !Peek('}')) return false;
    }
    SkipSpace();
    return text_.empty() && descr_.has_value() && fortran_order_.has_value() && shape_.has_value();
  }

  const std::string& descr() const { return *descr_; }
  bool fortran_order() const { return *fortran_order_; }
  const std::vector<uint64_t>& shape() const { return *shape_; }

 private:
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }

  bool Peek(char c) {
    SkipSpace();
    return !text_.empty() && text_.front() == c;
  }

  bool Take(char c) {
    if (!Peek(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (!absl::StartsWith(text_, word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string> ReadString() {
    SkipSpace();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == absl::string_view::npos) return std::nullopt;
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  std::optional<uint64_t> ReadNumber() {
    SkipSpace();
    size_t digits = 0;
    while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) ++digits;
    uint64_t value;
    if (!absl::SimpleAtoi(text_.substr(0, digits), &value)) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }

  std::optional<std::vector<uint64_t>> ReadTuple() {
    if (!Take('(')) return std::nullopt;
    std::vector<uint64_t> values;
    while (!Take(')')) {
      const std::optional<uint64_t> value = ReadNumber();
      if (!value.has_value() || values.size() == kMaxDimensions) return std::nullopt;
      values.push_back(*value);
      if (!Take(',') && !Peek(')')) return std::nullopt;
    }
    return values;
  }

  std::optional<bool> ReadBool() {
    if (TakeWord("False")) return false;
    if (TakeWord("True")) return true;
    return std::nullopt;
  }

  bool ReadEntry() {
    const std::optional<std::string> key = ReadString();
    if (!key.has_value() || !Take(':')) return false;
    if (*key == "descr" && !descr_.has_value()) return (descr_ = ReadString()).has_value();
    if (*key == "fortran_order" && !fortran_order_.has_value()) {
      return (fortran_order_ = ReadBool()).has_value();
    }
    if (*key == "shape" && !shape_.has_value()) return (shape_ = ReadTuple()).has_value();
    return false;
  }

  absl::string_view text_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_order_;
  std::optional<std::vector<uint64_t>> shape_;
};

std::optional<TensorType> TypeOf(absl::string_view descr) {
  if (descr == "<f4") return TensorType::kFloat32;
  if (descr == "<f2") return TensorType::kFloat16;
  if (descr == "<u2") return TensorType::kUint16;
  if (descr == "<i4") return TensorType::kInt32;
  if (descr == "<u4") return TensorType::kUint32;
  if (descr == "<i8") return TensorType::kInt64;
  if (descr == "<u8") return TensorType::kUint64;
  return std::nullopt;
}

// Cuts header and data out of the file.
absl::Status SplitFile(absl::string_view file, absl::string_view name, absl::string_view* header,
                       absl::string_view* data) {
  if (!absl::StartsWith(file, kMagic)) return Malformed(name, "expected the magic \\x93NUMPY");
  if (file.size() < 8) return Malformed(name, "it ends within the version");
  const int version = static_cast<uint8_t>(file[6]);
  if (version < 1 || version > 3) {
    return Malformed(name, absl::StrCat("expected version 1, 2 or 3, found ", version));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  if (file.size() < begin) return Malformed(name, "it ends within the header's length");
  const uint64_t header_bytes = LittleEndian(file.substr(8, length_bytes));
  if (header_bytes > kMaxHeaderBytes) {
    return Malformed(name, absl::StrCat("expected a header of at most ", kMaxHeaderBytes,
                                        " bytes, found ", header_bytes));
  }
  if (file.size() - begin < header_bytes) return Malformed(name, "it ends within the header");
  *header = file.substr(begin, header_bytes);
  *data = file.substr(begin + header_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorView> ParseNpy(absl::string_view file, absl::string_view name) {
  absl::string_view header, data;
  RETURN_IF_ERROR(SplitFile(file, name, &header, &data));
  HeaderReader reader(header);
  if (!reader.Read()) {
    return Malformed(name, "expected a header with 'descr', 'fortran_order' and 'shape'");
  }
  const std::optional<TensorType> type = TypeOf(reader.descr());
  if (!type.has_value()) {
    return Malformed(name, absl::StrCat("expected elements <f4, <f2, <u2, <i4, <u4, <i8 or <u8, "
                                        "found ",
                                        reader.descr()));
  }
  // With at most one dimension both orders are the same.
  if (reader.fortran_order() && reader.shape().size() > 1) {
    return Malformed(name, "expected C order, found Fortran order");
  }
  ASSIGN_OR_RETURN(const uint64_t bytes, ShapeBytes(*type, reader.shape(), name));
  if (bytes != data.size()) {
    return Malformed(name, absl::StrCat("expected ", bytes, " bytes of data for shape ",
                                        ShapeText(reader.shape()), ", found ", data.size()));
  }
  return TensorView{std::string(name), *type, reader.shape(), data};
}

}  // namespace maxsimd
