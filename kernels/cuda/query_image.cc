#include "kernels/cuda/query_image.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/element_conversion.h"

namespace maxsimd::cuda {
namespace {

constexpr size_t kUnitBytes = 16;

uint32_t PaddedTokens(const QueryView& query, const TileConfig& config) {
  return CeilDiv(query.tokens, config.chunk_tokens) * config.chunk_tokens;
}

// Copies one row, padded, to its place in a plane.
void PlaceRow(const std::byte* row, size_t row_bytes, uint32_t token, uint32_t plane,
              const TileConfig& config, std::byte* image) {
  const uint32_t planes = QueryPlanes(config.element_type);
  const uint32_t in_chunk = token % config.chunk_tokens;
  std::byte* const chunk = image + token / config.chunk_tokens * QueryChunkBytes(config);
  for (size_t at = 0; at < row_bytes; at += kUnitBytes) {
    const size_t panel = at / kAtomBytes * planes + plane;
    const size_t unit = at % kAtomBytes / kUnitBytes;
    std::byte* const to = chunk + panel * config.chunk_tokens * kAtomBytes + in_chunk * kAtomBytes +
                          (unit ^ (in_chunk % 8)) * kUnitBytes;
    std::memcpy(to, row + at, std::min(kUnitBytes, row_bytes - at));
  }
}

// The same for a float32 row, split as SplitTf32 (ptx.cuh) splits the documents' rows.
void PlaceSplitRow(const std::byte* row, uint32_t dim, uint32_t token, const TileConfig& config,
                   std::byte* image) {
  std::vector<uint32_t> high(dim);
  std::vector<uint32_t> low(dim);
  for (uint32_t k = 0; k < dim; ++k) {
    uint32_t bits;
    std::memcpy(&bits, row + k * sizeof(bits), sizeof(bits));
    high[k] = bits & 0xffffe000u;
    low[k] = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) - std::bit_cast<float>(high[k])) +
             0x1000u;
  }
  const size_t row_bytes = dim * sizeof(uint32_t);
  PlaceRow(reinterpret_cast<const std::byte*>(high.data()), row_bytes, token, 0, config, image);
  PlaceRow(reinterpret_cast<const std::byte*>(low.data()), row_bytes, token, 1, config, image);
}

void PlaceWeights(uint32_t tokens, const TileConfig& config, const float* weights,
                  std::byte* image) {
  for (uint32_t first = 0; first < tokens; first += config.chunk_tokens) {
    const uint32_t count = std::min(config.chunk_tokens, tokens - first);
    std::memcpy(
        image + first / config.chunk_tokens * QueryChunkBytes(config) + QueryRowsBytes(config),
        weights + first, count * sizeof(float));
  }
}

// Behind the weights.
void PlaceLargest(const QueryView& query, const TileConfig& config, std::byte* image) {
  for (uint32_t first = 0; first < query.tokens; first += config.chunk_tokens) {
    const uint32_t end = std::min(first + config.chunk_tokens, query.tokens);
    float largest = 0;
    for (size_t k = size_t{first} * query.dim; k < size_t{end} * query.dim; ++k) {
      largest = std::max(largest, std::abs(LoadElement(query.element_type, query.data, k)));
    }
    std::memcpy(image + first / config.chunk_tokens * QueryChunkBytes(config) +
                    QueryRowsBytes(config) + config.chunk_tokens * sizeof(float),
                &largest, sizeof(largest));
  }
}

// Scales the row in place and returns 1 / norm of what it then holds.
float NormalizeRow(ElementType type, uint32_t dim, std::byte* row) {
  double largest = 0;
  for (uint32_t k = 0; k < dim; ++k) {
    largest = std::max(largest, std::abs(double{LoadElement(type, row, k)}));
  }
  if (largest == 0) return 0;
  if (dim == 1) {  // All that is left is the sign; exactly, so that equal similarities are equal.
    StoreElement(type, LoadElement(type, row, 0) < 0 ? -1.0f : 1.0f, row, 0);
    return 1;
  }
  // float16's own range is small enough.
  const int exponent = type == ElementType::kFloat16 ? 0 : std::ilogb(largest);
  double sum = 0;
  for (uint32_t k = 0; k < dim; ++k) {
    const double scaled = std::ldexp(double{LoadElement(type, row, k)}, -exponent);
    StoreElement(type, static_cast<float>(scaled), row, k);
    sum += scaled * scaled;
  }
  return static_cast<float>(1 / std::sqrt(sum));
}

}  // namespace

size_t QueryImageBytes(const QueryView& query, const TileConfig& config) {
  if (config.kernel == Kernel::kSm90) return config.chunks * QueryChunkBytes(config);
  return size_t{PaddedTokens(query, config)} * AtomCount(query.element_type, query.dim) *
         kAtomBytes;
}

void WriteQueryImage(const QueryView& query, const TileConfig& config, const float* weights,
                     std::byte* image, float* factors) {
  std::memset(image, 0, QueryImageBytes(query, config));
  const size_t row_bytes = query.dim * ElementBytes(query.element_type);
  const uint32_t atoms = AtomCount(query.element_type, query.dim);
  std::vector<std::byte> scaled(query.normalize ? row_bytes : 0);
  for (uint32_t token = 0; token < query.tokens; ++token) {
    const std::byte* row = query.data + token * row_bytes;
    if (query.normalize) {
      std::memcpy(scaled.data(), row, row_bytes);
      factors[token] = NormalizeRow(query.element_type, query.dim, scaled.data());
      row = scaled.data();
    }
    if (config.kernel == Kernel::kGeneric) {
      std::memcpy(image + size_t{token} * atoms * kAtomBytes, row, row_bytes);
    } else if (query.element_type == ElementType::kFloat32) {
      PlaceSplitRow(row, query.dim, token, config, image);
    } else {
      PlaceRow(row, row_bytes, token, 0, config, image);
    }
  }
  if (config.kernel == Kernel::kGeneric) return;
  PlaceWeights(query.tokens, config, weights, image);
  // Of all kernels only this one asks.
  if (query.element_type == ElementType::kBfloat16 && config.chunk_tokens == 256) {
    PlaceLargest(query, config, image);
  }
}

double WriteWeights(const QueryView& query, float* weights) {
  if (query.weights.empty()) {
    std::fill_n(weights, query.tokens, 1.0f);
  } else {
    std::copy(query.weights.begin(), query.weights.end(), weights);
  }
  if (query.aggregation != Aggregation::kMean) return 1;
  const double sum = WeightSum(query.weights, query.tokens);
  float largest = 0;
  for (uint32_t i = 0; i < query.tokens; ++i) largest = std::max(largest, std::abs(weights[i]));
  const int exponent = std::ilogb(largest);
  for (uint32_t i = 0; i < query.tokens; ++i) weights[i] = std::ldexp(weights[i], -exponent);
  return std::ldexp(sum, -exponent);
}

}  // namespace maxsimd::cuda
