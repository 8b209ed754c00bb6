#include "client/chunk_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "client/row_set.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// Tags and lengths of the messages around a chunk's data: at most six of each, of 1 and 10 bytes,
// and the two scalars of TokenMatrix.
constexpr uint64_t kChunkOverheadBytes = 80;

uint64_t OrUnlimited(uint64_t limit) {
  return limit == 0 ? kUnlimited : limit;
}

absl::Status OverLimit(size_t document, absl::string_view what, uint64_t value,
                       absl::string_view limit, uint64_t maximum) {
  return absl::ResourceExhaustedError(absl::StrCat("document ", document, ": ", value, " ", what,
                                                   ", over the server's limit ", limit, " = ",
                                                   maximum));
}

// What a chunk may hold; the target only counts once it holds something.
struct ChunkLimits {
  uint64_t target_bytes;
  uint64_t max_bytes;
  uint64_t max_documents;
  uint64_t max_multiply_adds;
};

// Upper bound of what a document takes on the wire beside its rows: its length (a uint32 varint,
// at most 5 bytes), its offset (a uint64 one, 10) and its id with tag and length (1 + 5).
uint64_t BytesBesideRows(const DocumentLayout& layout, size_t document) {
  uint64_t bytes = 5;
  if (!layout.offsets.empty()) bytes += 10;
  if (!layout.ids.empty()) bytes += 6 + layout.ids[document].size();
  return bytes;
}

uint64_t BytesAlone(const DocumentLayout& layout, size_t document) {
  const uint64_t rows = SaturatingMultiply(layout.lengths[document], layout.row_bytes);
  return SaturatingAdd(rows, kChunkOverheadBytes + BytesBesideRows(layout, document));
}

// Fills one chunk after another with consecutive documents.
class ChunkBuilder {
 public:
  ChunkBuilder(const DocumentLayout& layout, const ChunkLimits& limits)
      : layout_(layout), limits_(limits) {}

  // The next chunk begins with the query, of this size.
  void Reserve(uint64_t start_bytes) { bytes_ = kChunkOverheadBytes + start_bytes; }

  bool Accepts(size_t document, RowRange rows) const {
    if (chunk_.document_count >= limits_.max_documents) return false;
    if (SaturatingAdd(multiply_adds_, MultiplyAdds(rows)) > limits_.max_multiply_adds) return false;
    const uint64_t new_rows = rows_.CountMissing(rows);
    const uint64_t bytes = SaturatingAdd(bytes_, AddedBytes(document, new_rows));
    if (bytes > limits_.max_bytes) return false;
    const bool shares_rows = new_rows < rows.end - rows.begin;
    return chunk_.document_count == 0 || bytes <= limits_.target_bytes || shares_rows;
  }

  void Add(size_t document, RowRange rows) {
    if (chunk_.document_count == 0) chunk_.first_document = document;
    ++chunk_.document_count;
    bytes_ += AddedBytes(document, rows_.CountMissing(rows));
    multiply_adds_ += MultiplyAdds(rows);
    rows_.Add(rows);
  }

  // The chunk so far; the next begins empty, without the query.
  Chunk Take() {
    chunk_.ranges = rows_.ranges();
    rows_.clear();
    bytes_ = kChunkOverheadBytes;
    multiply_adds_ = 0;
    return std::exchange(chunk_, Chunk{});
  }

  bool empty() const { return chunk_.document_count == 0; }

 private:
  uint64_t MultiplyAdds(RowRange rows) const {
    return SaturatingMultiply(rows.end - rows.begin, layout_.multiply_adds_per_row);
  }
  uint64_t AddedBytes(size_t document, uint64_t new_rows) const {
    return SaturatingAdd(SaturatingMultiply(new_rows, layout_.row_bytes),
                         BytesBesideRows(layout_, document));
  }

  const DocumentLayout& layout_;
  const ChunkLimits limits_;
  Chunk chunk_;
  RowSet rows_;
  uint64_t bytes_ = kChunkOverheadBytes;
  uint64_t multiply_adds_ = 0;
};

class Planner {
 public:
  Planner(const DocumentLayout& layout, const v1::Limits& limits, uint64_t start_bytes,
          const PlanOptions& options)
      : layout_(layout),
        start_bytes_(start_bytes),
        rpc_(options.rpc),
        max_document_tokens_(OrUnlimited(limits.max_document_tokens())),
        max_message_bytes_(OrUnlimited(limits.max_message_bytes())),
        max_stream_message_bytes_(OrUnlimited(limits.max_stream_message_bytes())),
        max_stream_documents_(OrUnlimited(limits.max_documents_per_stream())),
        max_multiply_adds_(OrUnlimited(limits.max_multiply_adds_per_message())),
        streams_(rpc_ != RpcChoice::kUnary &&
                 SaturatingAdd(start_bytes, kChunkOverheadBytes) <= max_stream_message_bytes_),
        builder_(layout, {.target_bytes = streams_ ? options.target_bytes : kUnlimited,
                          .max_bytes = streams_ ? max_stream_message_bytes_ : max_message_bytes_,
                          .max_documents = OrUnlimited(limits.max_documents_per_message()),
                          .max_multiply_adds = max_multiply_adds_}) {}

  absl::StatusOr<std::vector<PlannedCall>> Plan() {
    if (SaturatingAdd(start_bytes_, kChunkOverheadBytes) > max_message_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat("the query takes ", start_bytes_,
                                                       " bytes, over the server's limit "
                                                       "max_message_bytes = ",
                                                       max_message_bytes_));
    }
    uint64_t first_row = 0;
    for (size_t document = 0; document < layout_.lengths.size(); ++document) {
      const uint64_t begin = layout_.offsets.empty() ? first_row : layout_.offsets[document];
      const RowRange rows{begin, begin + layout_.lengths[document]};
      RETURN_IF_ERROR(AddDocument(document, rows));
      first_row = rows.end;
    }
    EndCall();
    if (calls_.empty()) calls_.push_back({.stream = streams_, .chunks = {Chunk{}}});
    if (rpc_ == RpcChoice::kAuto) PreferOneUnaryCall();
    return std::move(calls_);
  }

 private:
  absl::Status AddDocument(size_t document, RowRange rows) {
    RETURN_IF_ERROR(CheckFitsAlone(document));
    if (streams_ && BytesAlone(layout_, document) > max_stream_message_bytes_) {
      EndCall();
      calls_.push_back({.stream = false, .chunks = {AloneIn(document, rows)}});
      return absl::OkStatus();
    }
    if (!in_call_) BeginCall();
    if (!builder_.Accepts(document, rows)) EndChunk();
    builder_.Add(document, rows);
    if (++stream_documents_ == max_stream_documents_) EndCall();
    return absl::OkStatus();
  }

  absl::Status CheckFitsAlone(size_t document) const {
    const uint64_t length = layout_.lengths[document];
    if (length > max_document_tokens_) {
      return OverLimit(document, "tokens", length, "max_document_tokens", max_document_tokens_);
    }
    const uint64_t work = SaturatingMultiply(length, layout_.multiply_adds_per_row);
    if (work > max_multiply_adds_) {
      return OverLimit(document, "multiply-adds", work, "max_multiply_adds_per_message",
                       max_multiply_adds_);
    }
    const uint64_t alone = BytesAlone(layout_, document);
    if (streams_ && alone <= max_stream_message_bytes_) return absl::OkStatus();
    if (const uint64_t bytes = SaturatingAdd(alone, start_bytes_); bytes > max_message_bytes_) {
      return OverLimit(document, "bytes with the query", bytes, "max_message_bytes",
                       max_message_bytes_);
    }
    return absl::OkStatus();
  }

  static Chunk AloneIn(size_t document, RowRange rows) {
    return {.first_document = document, .document_count = 1, .ranges = {rows}};
  }

  void BeginCall() {
    in_call_ = true;
    stream_documents_ = 0;
    call_ = {.stream = streams_, .chunks = {}};
    builder_.Reserve(start_bytes_);
  }

  void EndChunk() {
    call_.chunks.push_back(builder_.Take());
    if (!streams_) {  // Each message is a call of its own.
      calls_.push_back(std::move(call_));
      BeginCall();
    }
  }

  void EndCall() {
    if (!in_call_) return;
    if (!builder_.empty()) call_.chunks.push_back(builder_.Take());
    calls_.push_back(std::move(call_));
    in_call_ = false;
  }

  void PreferOneUnaryCall() {
    if (calls_.size() != 1 || calls_[0].chunks.size() != 1) return;
    uint64_t bytes = kChunkOverheadBytes + start_bytes_;
    for (const RowRange& rows : calls_[0].chunks[0].ranges) {
      bytes += (rows.end - rows.begin) * layout_.row_bytes;
    }
    for (size_t i = 0; i < layout_.lengths.size(); ++i) bytes += BytesBesideRows(layout_, i);
    if (bytes <= max_message_bytes_) calls_[0].stream = false;
  }

  const DocumentLayout& layout_;
  const uint64_t start_bytes_;
  const RpcChoice rpc_;
  const uint64_t max_document_tokens_;
  const uint64_t max_message_bytes_;
  const uint64_t max_stream_message_bytes_;
  const uint64_t max_stream_documents_;
  const uint64_t max_multiply_adds_;
  const bool streams_;  // The query fits a stream's message.
  ChunkBuilder builder_;
  bool in_call_ = false;
  uint64_t stream_documents_ = 0;
  PlannedCall call_;
  std::vector<PlannedCall> calls_;
};

}  // namespace

absl::StatusOr<std::vector<PlannedCall>> PlanCalls(const DocumentLayout& layout,
                                                   const v1::Limits& limits, uint64_t start_bytes,
                                                   const PlanOptions& options) {
  return Planner(layout, limits, start_bytes, options).Plan();
}

std::vector<uint64_t> RebasedOffsets(const DocumentLayout& layout, const Chunk& chunk) {
  std::vector<uint64_t> rows_before;  // Of each range.
  uint64_t rows = 0;
  for (const RowRange& range : chunk.ranges) {
    rows_before.push_back(rows);
    rows += range.end - range.begin;
  }
  std::vector<uint64_t> offsets(chunk.document_count, 0);
  for (size_t i = 0; i < chunk.document_count; ++i) {
    const size_t document = chunk.first_document + i;
    if (layout.lengths[document] == 0) continue;
    const uint64_t row = layout.offsets[document];
    const auto after =
        std::upper_bound(chunk.ranges.begin(), chunk.ranges.end(), row,
                         [](uint64_t r, const RowRange& range) { return r < range.begin; });
    const size_t range = after - chunk.ranges.begin() - 1;
    offsets[i] = rows_before[range] + row - chunk.ranges[range].begin;
  }
  return offsets;
}

uint64_t SaturatingMultiply(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kUnlimited : product;
}

uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? kUnlimited : sum;
}

}  // namespace maxsimd
