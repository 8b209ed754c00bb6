// A rerank input from files, as the flags of `maxsimd-cli rerank` name them.
//
// In a .safetensors file tensors are found by name: `query` with `query_lengths` and `weights`,
// `documents` with `lengths` and `offsets`; or, where a file holds one kind only, `tokens` with
// `lengths`.  In a .npy file the one tensor is meant.  3-D tensors are texts of equal length.
//
// Errors: InvalidArgument, NotFound and so on, with the file's name and what was expected.
#ifndef MAXSIMD_CLIENT_CLI_INPUT_FILES_H_
#define MAXSIMD_CLIENT_CLI_INPUT_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/rerank_types.h"

namespace maxsimd {

struct InputPaths {
  std::string query;
  std::string documents;
  std::string lengths;  // The rest may be empty.
  std::string offsets;
  std::string weights;
  std::string ids;
  uint64_t query_index = 0;
  v1::ElementType element_type = v1::ELEMENT_TYPE_UNSPECIFIED;
};

// An input with what it views.  `input.owner` holds the embeddings only.
struct LoadedInput {
  RerankInput input;
  uint64_t query_first_row = 0;
  std::vector<float> weights;
  std::vector<uint32_t> lengths;
  std::vector<uint64_t> offsets;
  std::vector<std::string> ids;
  std::vector<uint64_t> first_rows;  // Of each document, with or without offsets.
};

absl::StatusOr<std::unique_ptr<LoadedInput>> LoadInput(const InputPaths& paths);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_INPUT_FILES_H_
