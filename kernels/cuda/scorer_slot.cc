#include "kernels/cuda/scorer_slot.h"

#include <algorithm>
#include <limits>

#include "absl/time/clock.h"

#include "kernels/status_macros.h"

namespace maxsimd::cuda {
namespace {

// Enough for thousands of documents and queries of usual size; larger batches grow them.
constexpr size_t kFirstUploadBytes = size_t{4} << 20;
constexpr size_t kFirstOutputBytes = size_t{1} << 20;
constexpr size_t kFirstPartialBytes = size_t{4} << 20;
constexpr size_t kFirstCounters = 32768;

constexpr size_t kRowAlignment = 16;

// A small batch is done in tens of microseconds, as long as it takes to put a thread to sleep and
// wake it; so look for that long before sleeping.
constexpr absl::Duration kSpin = absl::Microseconds(100);

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

absl::Status CopyUp(const std::byte* from, size_t bytes, std::byte* to, cudaStream_t stream) {
  if (bytes == 0) return absl::OkStatus();
  return ToStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "upload");
}

absl::Status LaunchOne(const Launch& launch, cudaStream_t stream) {
  const cudaError_t error =
      launch.config.kernel == Kernel::kSm90
          ? LaunchSm90(launch.config, launch.params, launch.maps, launch.blocks, stream)
          : LaunchGeneric(launch.config, launch.params, launch.blocks, stream);
  return ToStatus(error, "launch");
}

size_t GroupBytes(const QueryGroup& group) {
  return group.row_count * group.row_pitch_bytes;
}

size_t RoundUp(size_t bytes) {
  return (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

bool LiesIn(absl::Span<const std::byte> packed, const QueryGroup& group) {
  return group.rows >= packed.data() && GroupBytes(group) <= packed.size() &&
         group.rows - packed.data() <= static_cast<ptrdiff_t>(packed.size() - GroupBytes(group));
}

bool IsAligned(absl::Span<const std::byte> packed, const QueryGroup& group) {
  return static_cast<size_t>(group.rows - packed.data()) % kRowAlignment == 0;
}

}  // namespace

absl::Status ScorerSlot::Create() {
  RETURN_IF_ERROR(stream_.Create());
  for (Event* event : {&started_, &uploaded_, &done_}) RETURN_IF_ERROR(event->Create());
  BatchSizes sizes;
  sizes.upload_bytes = kFirstUploadBytes;
  sizes.score_count = kFirstOutputBytes / sizeof(ScoreOut);
  sizes.partial_count = kFirstPartialBytes / sizeof(float);
  sizes.counter_count = kFirstCounters;
  return ReserveFor(sizes);
}

absl::Status ScorerSlot::ReservePacked(size_t bytes) {
  return packed_.Reserve(bytes);
}

absl::Status ScorerSlot::ReserveFor(const BatchSizes& sizes) {
  RETURN_IF_ERROR(upload_host_.Reserve(sizes.upload_bytes));
  RETURN_IF_ERROR(upload_.Reserve(sizes.upload_bytes));
  const size_t output_bytes =
      sizes.score_count * sizeof(ScoreOut) + sizes.match_count * sizeof(MatchOut);
  RETURN_IF_ERROR(outputs_host_.Reserve(output_bytes));
  RETURN_IF_ERROR(ReserveZeroed(output_bytes, &outputs_));  // Empty documents' stay unwritten.
  RETURN_IF_ERROR(partials_.Reserve(sizes.partial_count * (sizeof(float) + sizeof(uint32_t))));
  return ReserveZeroed(sizes.counter_count * sizeof(uint32_t), &counters_);
}

absl::Status ScorerSlot::ReserveZeroed(size_t bytes, DeviceBuffer* buffer) {
  if (bytes <= buffer->size()) return absl::OkStatus();
  RETURN_IF_ERROR(buffer->Reserve(bytes));
  return ToStatus(cudaMemsetAsync(buffer->data(), 0, buffer->size(), stream_.get()), "memset");
}

BatchMemory ScorerSlot::Memory(const BatchSizes& sizes) const {
  BatchMemory memory;
  memory.upload_host = upload_host_.data();
  memory.upload = upload_.data();
  memory.scores = reinterpret_cast<ScoreOut*>(outputs_.data());
  memory.matches = reinterpret_cast<MatchOut*>(memory.scores + sizes.score_count);
  memory.partial_maxima = reinterpret_cast<float*>(partials_.data());
  memory.partial_rows = reinterpret_cast<uint32_t*>(memory.partial_maxima + sizes.partial_count);
  memory.counters = reinterpret_cast<uint32_t*>(counters_.data());
  return memory;
}

absl::Status ScorerSlot::UploadRows(const ScoreBatch& batch) {
  size_t realigned_bytes = 0;
  for (const QueryGroup& group : batch.groups) {
    if (!LiesIn(batch.packed, group)) {
      return absl::InvalidArgumentError("rows: not in the packed buffer");
    }
    if (!IsAligned(batch.packed, group)) realigned_bytes += RoundUp(GroupBytes(group));
  }
  RETURN_IF_ERROR(packed_.Reserve(batch.packed.size()));
  RETURN_IF_ERROR(realigned_.Reserve(realigned_bytes));
  RETURN_IF_ERROR(CopyUp(batch.packed.data(), batch.packed.size(), packed_.data(), stream_.get()));
  places_.clear();
  size_t realigned = 0;
  for (const QueryGroup& group : batch.groups) {
    if (IsAligned(batch.packed, group)) {
      places_.push_back(
          {packed_.data(), packed_.size(), packed_.data() + (group.rows - batch.packed.data())});
      continue;
    }
    std::byte* const to = realigned_.data() + realigned;
    RETURN_IF_ERROR(CopyUp(group.rows, GroupBytes(group), to, stream_.get()));
    places_.push_back({realigned_.data(), realigned_.size(), to});
    realigned += RoundUp(GroupBytes(group));
  }
  return absl::OkStatus();
}

absl::Status ScorerSlot::Enqueue(const ScoreBatch& batch, const DeviceTraits& device) {
  cudaStream_t const stream = stream_.get();
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(started_.get(), stream), "event"));
  RETURN_IF_ERROR(UploadRows(batch));
  plan_.Make(batch.groups, places_, device);  // While the rows are on their way.
  const BatchSizes& sizes = plan_.sizes();
  RETURN_IF_ERROR(ReserveFor(sizes));
  RETURN_IF_ERROR(plan_.Write(Memory(sizes), &launches_));
  RETURN_IF_ERROR(CopyUp(upload_host_.data(), sizes.upload_bytes, upload_.data(), stream));
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(uploaded_.get(), stream), "event"));
  for (const Launch& launch : launches_) RETURN_IF_ERROR(LaunchOne(launch, stream));
  const size_t output_bytes =
      sizes.score_count * sizeof(ScoreOut) + sizes.match_count * sizeof(MatchOut);
  if (output_bytes > 0 && !launches_.empty()) {
    RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(outputs_host_.data(), outputs_.data(), output_bytes,
                                             cudaMemcpyDeviceToHost, stream),
                             "download"));
  }
  return ToStatus(cudaEventRecord(done_.get(), stream), "event");
}

absl::Status ScorerSlot::Wait(bool spin) {
  const absl::Time sleep = absl::Now() + (spin ? kSpin : absl::ZeroDuration());
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady && absl::Now() < sleep) state = cudaEventQuery(done_.get());
  if (state == cudaErrorNotReady) state = cudaEventSynchronize(done_.get());
  return ToStatus(state, "batch");
}

absl::Status ScorerSlot::Synchronize() {
  return ToStatus(cudaStreamSynchronize(stream_.get()), "stream");
}

void ScorerSlot::Deliver(const ScoreBatch& batch) const {
  const ScoreOut* const scores = reinterpret_cast<const ScoreOut*>(outputs_host_.data());
  const MatchOut* const matches =
      reinterpret_cast<const MatchOut*>(scores + plan_.sizes().score_count);
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    QueryGroup& group = batch.groups[g];
    for (size_t d = 0; d < group.documents.size(); ++d) {
      const ScoreOut& score = scores[plan_.first_score(g) + d];
      group.scores[d] = group.documents[d].length == 0
                            ? DocumentScore{kMinusInfinity, DocumentStatus::kEmpty}
                            : DocumentScore{score.score, static_cast<DocumentStatus>(score.status)};
    }
    if (!group.query.return_matches) continue;
    const MatchOut* const first = matches + plan_.first_match(g);
    std::transform(first, first + group.matches.size(), group.matches.begin(),
                   [](const MatchOut& match) {
                     return TokenMatch{match.document_token, match.similarity};
                   });
  }
}

ScoreTimings ScorerSlot::Timings() const {
  float upload_ms = 0;
  float compute_ms = 0;
  cudaEventElapsedTime(&upload_ms, started_.get(), uploaded_.get());
  cudaEventElapsedTime(&compute_ms, uploaded_.get(), done_.get());
  return {absl::Milliseconds(upload_ms), absl::Milliseconds(compute_ms)};
}

}  // namespace maxsimd::cuda
