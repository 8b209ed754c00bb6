#include "client/input_check.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

absl::Status CheckMatrix(const TokenMatrixView& matrix, absl::string_view name) {
  if (ElementBytes(matrix.element_type) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": element_type is none that is known"));
  }
  if (matrix.dim == 0) return absl::InvalidArgumentError(absl::StrCat(name, ": dim is 0"));
  if (matrix.data.size() % RowBytes(matrix) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": data has ", matrix.data.size(),
                                                   " bytes, no multiple of a row's ",
                                                   RowBytes(matrix)));
  }
  return absl::OkStatus();
}

absl::Status CheckPerDocument(size_t count, size_t documents, absl::string_view name) {
  if (count == 0 || count == documents) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", count, " for ", documents, " documents"));
}

absl::Status CheckBackToBack(absl::Span<const uint32_t> lengths, uint64_t rows) {
  uint64_t sum = 0;  // At most 2^32 * 2^29 lengths that fit in memory: no overflow.
  for (uint32_t length : lengths) sum += length;
  if (sum == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "lengths: their sum is ", sum, ", but documents have ", rows, " rows and no offsets"));
}

absl::Status CheckOffsets(absl::Span<const uint32_t> lengths, absl::Span<const uint64_t> offsets,
                          uint64_t rows) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (offsets[i] > rows || lengths[i] > rows - offsets[i]) {
      return absl::InvalidArgumentError(absl::StrCat("offsets: document ", i, " begins at row ",
                                                     offsets[i], " and has ", lengths[i],
                                                     " tokens, beyond the ", rows, " rows"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInput(const RerankInput& input) {
  RETURN_IF_ERROR(CheckMatrix(input.query, "query"));
  const size_t documents = input.lengths.size();
  RETURN_IF_ERROR(CheckPerDocument(input.offsets.size(), documents, "offsets"));
  RETURN_IF_ERROR(CheckPerDocument(input.ids.size(), documents, "ids"));
  if (documents == 0 && input.documents.data.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckMatrix(input.documents, "documents"));
  const uint64_t rows = input.documents.data.size() / RowBytes(input.documents);
  if (input.offsets.empty()) return CheckBackToBack(input.lengths, rows);
  return CheckOffsets(input.lengths, input.offsets, rows);
}

}  // namespace maxsimd
