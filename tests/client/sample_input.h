// A rerank input with all its memory, filled by a seed.
#ifndef MAXSIMD_TESTS_CLIENT_SAMPLE_INPUT_H_
#define MAXSIMD_TESTS_CLIENT_SAMPLE_INPUT_H_

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "client/rerank_types.h"

namespace maxsimd {

// float32; values are small multiples of 1/8, so that sums are exact and equal bits may be asked
// for.
struct SampleInput {
  std::string query_data;
  std::string document_data;
  std::vector<float> weights;
  std::vector<uint32_t> lengths;
  std::vector<uint64_t> offsets;
  std::vector<std::string> ids;
  RerankInput input;

  SampleInput(uint32_t query_tokens, std::vector<uint32_t> document_lengths, uint32_t dim,
              uint64_t seed)
      : lengths(std::move(document_lengths)) {
    std::mt19937 random(seed);
    uint64_t rows = 0;
    for (uint32_t length : lengths) rows += length;
    for (uint64_t i = 0; i < query_tokens * dim; ++i) Append(&query_data, random);
    for (uint64_t i = 0; i < rows * dim; ++i) Append(&document_data, random);
    for (size_t i = 0; i < lengths.size(); ++i) ids.push_back("d" + std::to_string(i));
    input.query = {v1::ELEMENT_TYPE_FLOAT32, dim, query_data};
    input.documents = {v1::ELEMENT_TYPE_FLOAT32, dim, document_data};
    input.lengths = lengths;
    input.ids = ids;
  }
  SampleInput(const SampleInput&) = delete;
  SampleInput& operator=(const SampleInput&) = delete;

 private:
  static void Append(std::string* data, std::mt19937& random) {
    const float value = static_cast<float>(static_cast<int>(random() % 33) - 16) / 8;
    data->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_CLIENT_SAMPLE_INPUT_H_
