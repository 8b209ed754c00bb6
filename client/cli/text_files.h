// Text beside embeddings: one line per document, and the strings of tokens.
//
// Errors: as MapFile; InvalidArgument, with the file's name, for what is not as expected.
#ifndef MAXSIMD_CLIENT_CLI_TEXT_FILES_H_
#define MAXSIMD_CLIENT_CLI_TEXT_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace maxsimd {

// The lines of a file, without their ends; a last one that is empty doesn't count.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path);

// The same, refusing any other number.
absl::StatusOr<std::vector<std::string>> ReadLinesPerDocument(const std::string& path,
                                                              size_t documents);

struct TokenStrings {
  // One list per query or document; else one list for all rows of the packed tensor.
  bool nested = false;
  std::vector<std::vector<std::string>> lists;

  // Token `token` of text `index`, whose first row is `first_row`; "" where there is none.
  std::string Find(size_t index, size_t first_row, size_t token) const;
};

// A JSON array of strings or of arrays of strings, or one token per line.
absl::StatusOr<TokenStrings> ReadTokenStrings(const std::string& path);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_TEXT_FILES_H_
