#include "server/sizing.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"

namespace maxsimd {
namespace {

// A batch is closed at this much of the device's time.  Long against what a batch costs beside its
// arithmetic (tens of microseconds), short against what a small call notices: beside a gigabyte
// stream it waits for the batch in progress and rides in the next.  The design's 50 ms would be ten
// times that wait for nothing: a batch of 5 ms costs under 1 % more than one of 50 ms.
constexpr double kBatchSeconds = 0.005;

}  // namespace

Limits LimitsFor(const Options& options) {
  Limits limits;
  limits.max_message_bytes = options.max_message_bytes;
  limits.max_stream_message_bytes =
      std::min(limits.max_stream_message_bytes, options.max_message_bytes);
  return limits;
}

uint64_t LargestUnitBytes(const Limits& limits, const Scorer& scorer) {
  const uint64_t message = std::max(limits.max_message_bytes, limits.max_stream_message_bytes);
  uint64_t largest = 0;
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    for (uint32_t dim = 1; dim <= limits.max_dim; ++dim) {
      const uint64_t rows = message / (dim * ElementBytes(type));
      largest = std::max<uint64_t>(largest, rows * scorer.RowPitchBytes(type, dim));
    }
  }
  return largest;
}

absl::StatusOr<BatchLimits> BatchLimitsFor(const Options& options, const Limits& limits,
                                           const Scorer& scorer) {
  const uint64_t largest_unit = LargestUnitBytes(limits, scorer);
  if (options.packed_buffer_bytes != 0 && options.packed_buffer_bytes < largest_unit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "packed-buffer-bytes: ", options.packed_buffer_bytes, " is less than the ", largest_unit,
        " that the documents of a message of max-message-bytes may take"));
  }
  BatchLimits batch;
  batch.buffers = options.packed_buffers;
  batch.buffer_bytes =
      options.packed_buffer_bytes != 0 ? options.packed_buffer_bytes : largest_unit;
  batch.max_tokens = options.max_batch_tokens;
  batch.max_delay = options.max_batch_delay;
  batch.copy_threads = CopyThreadsFor(std::thread::hardware_concurrency());
  batch.max_multiply_adds = std::max<uint64_t>(
      1, static_cast<uint64_t>(scorer.multiply_adds_per_second() * kBatchSeconds));
  return batch;
}

int CopyThreadsFor(unsigned processors) {
  return static_cast<int>(std::min(processors / 4, 8u));
}

absl::Duration TickFor(const Options& options) {
  return std::clamp(options.stream_idle_timeout / 4, absl::Milliseconds(1),
                    absl::Milliseconds(200));
}

}  // namespace maxsimd
