// Random embeddings of a given shape, for smoke and bench, and the flags that give it.
//
// Elements are uniform in [-1, 1], rounded to the element type; the same seed gives the same bytes.
// Lengths are uniform in [0, 2 * document_tokens], so that some documents are empty, or all equal.
#ifndef MAXSIMD_CLIENT_CLI_RANDOM_INPUT_H_
#define MAXSIMD_CLIENT_CLI_RANDOM_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

#include "client/rerank_types.h"
#include "kernels/element_type.h"

namespace maxsimd {

struct InputShape {
  int64_t documents = 100;
  int64_t document_tokens = 180;  // On average.
  int64_t query_tokens = 32;
  int64_t dim = 128;
  std::string element_type = "float16";
  int64_t seed = 1;
  bool uniform = false;

  // Also makes a shape that takes more than 16 GiB wrong usage.
  void AddTo(CLI::App* parser);
  ElementType kernel_element_type() const;
};

struct RandomInput {
  RerankInput input;  // Its owner holds query and rows.
  std::vector<uint32_t> lengths;
};

std::unique_ptr<RandomInput> MakeRandomInput(const InputShape& shape);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_CLI_RANDOM_INPUT_H_
