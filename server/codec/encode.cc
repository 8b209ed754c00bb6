#include "server/codec/encode.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/numeric/bits.h"
#include "google/protobuf/wire_format_lite.h"

#include "server/codec/field_numbers.h"

namespace maxsimd {
namespace {

using google::protobuf::internal::WireFormatLite;

// A small answer then costs one allocation; a large one grows by doubling.
constexpr size_t kFirstReserveBytes = 4096;

// Every field number of the contract's responses is below 16.
constexpr size_t kTagBytes = 1;

// proto3 leaves out scalars that are 0 (of floats: all of whose bits are 0, so -0 is written).
size_t VarintFieldBytes(uint64_t value) {
  return value == 0 ? 0 : kTagBytes + WireFormatLite::UInt64Size(value);
}
size_t FloatFieldBytes(float value) {
  return absl::bit_cast<uint32_t>(value) == 0 ? 0 : kTagBytes + sizeof(float);
}
size_t LengthFieldBytes(size_t size) {
  return kTagBytes + WireFormatLite::LengthDelimitedSize(size);
}

// Writes fields behind each other to where there is room for them.
class Writer {
 public:
  explicit Writer(uint8_t* at) : at_(at) {}

  void Varint(int number, uint64_t value) {
    if (value != 0) at_ = WireFormatLite::WriteUInt64ToArray(number, value, at_);
  }
  void Float(int number, float value) {
    if (FloatFieldBytes(value) != 0) at_ = WireFormatLite::WriteFloatToArray(number, value, at_);
  }
  // What a field of `size` bytes begins with; they follow.
  void Length(int number, size_t size) {
    at_ = WireFormatLite::WriteTagToArray(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, at_);
    at_ = WireFormatLite::WriteUInt32NoTagToArray(static_cast<uint32_t>(size), at_);
  }
  void Bytes(absl::string_view bytes) { at_ = std::copy(bytes.begin(), bytes.end(), at_); }

 private:
  uint8_t* at_;
};

// Room for `size` more bytes.
Writer Extend(std::string* message, size_t size) {
  const size_t begin = message->size();
  message->resize(begin + size);
  return Writer(reinterpret_cast<uint8_t*>(message->data() + begin));
}

size_t MatchBytes(const TokenMatch& match) {
  return VarintFieldBytes(match.document_token) + FloatFieldBytes(match.similarity);
}

int StatusNumber(DocumentStatus status) {
  switch (status) {
    case DocumentStatus::kScored:
      return field::document_status::kScored;
    case DocumentStatus::kEmpty:
      return field::document_status::kEmpty;
    case DocumentStatus::kNonFinite:
      break;
  }
  return field::document_status::kNonFinite;
}

// google.protobuf.Duration: both parts have the same sign.
struct WireDuration {
  explicit WireDuration(absl::Duration duration) {
    // 10,000 years is the most that the contract's type allows.
    const absl::Duration longest = absl::Seconds(int64_t{315'576'000'000});
    absl::Duration rest = std::clamp(duration, absl::ZeroDuration(), longest);
    seconds = absl::IDivDuration(rest, absl::Seconds(1), &rest);
    nanos = absl::ToInt64Nanoseconds(rest);
  }
  size_t bytes() const { return VarintFieldBytes(seconds) + VarintFieldBytes(nanos); }

  int64_t seconds;
  int64_t nanos;
};

}  // namespace

std::string& ResponseEncoder::MessageWithRoomFor(size_t bytes) {
  if (messages_.empty() || messages_.back().size() + bytes > kMaxResponseBytes) {
    messages_.emplace_back().reserve(std::max(bytes, kFirstReserveBytes));
  }
  return messages_.back();
}

void ResponseEncoder::Add(uint32_t index, const DocumentScore& score, absl::string_view id,
                          absl::Span<const TokenMatch> matches) {
  namespace scored_document = field::scored_document;
  const bool scored = score.status == DocumentStatus::kScored;
  if (!scored) matches = {};
  const float value = scored ? score.score : -std::numeric_limits<float>::infinity();
  const int status = StatusNumber(score.status);

  size_t size = VarintFieldBytes(index) + FloatFieldBytes(value) + VarintFieldBytes(status);
  if (!id.empty()) size += LengthFieldBytes(id.size());
  for (const TokenMatch& match : matches) size += LengthFieldBytes(MatchBytes(match));

  const size_t total = LengthFieldBytes(size);
  Writer writer = Extend(&MessageWithRoomFor(total), total);
  writer.Length(field::response::kResults, size);
  writer.Varint(scored_document::kIndex, index);
  writer.Float(scored_document::kScore, value);
  writer.Varint(scored_document::kStatus, status);
  if (!id.empty()) {
    writer.Length(scored_document::kId, id.size());
    writer.Bytes(id);
  }
  for (const TokenMatch& match : matches) {
    writer.Length(scored_document::kMatches, MatchBytes(match));
    writer.Varint(field::token_match::kDocumentToken, match.document_token);
    writer.Float(field::token_match::kSimilarity, match.similarity);
  }
}

void ResponseEncoder::AddSummary(const Summary& summary) {
  const std::pair<int, WireDuration> times[] = {
      {field::timings::kTotal, WireDuration(summary.total)},
      {field::timings::kReceive, WireDuration(summary.receive)},
      {field::timings::kQueue, WireDuration(summary.queue)},
      {field::timings::kPack, WireDuration(summary.pack)},
      {field::timings::kUpload, WireDuration(summary.upload)},
      {field::timings::kCompute, WireDuration(summary.compute)}};
  size_t timings_size = VarintFieldBytes(summary.batches);
  for (const auto& [number, time] : times) timings_size += LengthFieldBytes(time.bytes());
  const size_t size = VarintFieldBytes(summary.documents) +
                      VarintFieldBytes(summary.document_tokens) + LengthFieldBytes(timings_size);

  const size_t total = LengthFieldBytes(size);
  Writer writer = Extend(&MessageWithRoomFor(total), total);
  writer.Length(field::response::kSummary, size);
  writer.Varint(field::summary::kDocuments, summary.documents);
  writer.Varint(field::summary::kDocumentTokens, summary.document_tokens);
  writer.Length(field::summary::kTimings, timings_size);
  for (const auto& [number, time] : times) {
    writer.Length(number, time.bytes());
    writer.Varint(field::duration::kSeconds, time.seconds);
    writer.Varint(field::duration::kNanos, time.nanos);
  }
  writer.Varint(field::timings::kBatches, summary.batches);
}

std::vector<std::string> ResponseEncoder::Take() {
  return std::exchange(messages_, {});
}

}  // namespace maxsimd
