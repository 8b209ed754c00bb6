// Protobuf's wire format over the slices of a message, as strict and as lenient as the parsers that
// protoc generates: tags and lengths of at most 5 bytes, varints of at most 10, lengths within what
// encloses them, groups that end as they began, at most 100 levels.
//
// Every function that returns bool returns false when the message is malformed; nothing may be read
// after that.
//
// Threads: one reader, one thread.  The message must outlive it.
// Source: protobuf.dev/programming-guides/encoding; parse_context.h of protobuf 3.21.
#ifndef MAXSIMD_SERVER_CODEC_WIRE_READER_H_
#define MAXSIMD_SERVER_CODEC_WIRE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/wire_format_lite.h"

#include "server/codec/message_view.h"

namespace maxsimd {

using google::protobuf::internal::WireFormatLite;

constexpr uint32_t VarintTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_VARINT);
}
constexpr uint32_t Fixed32Tag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_FIXED32);
}
constexpr uint32_t LengthTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// A message's slices, as protobuf's streams read them.
class SliceStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit SliceStream(const MessageView& message) : slices_(message.slices()) {}

  bool Next(const void** data, int* size) override;
  void BackUp(int count) override;
  bool Skip(int count) override;
  int64_t ByteCount() const override { return position_; }

 private:
  const absl::Span<const MessageView::Slice> slices_;
  size_t slice_ = 0;   // The next bytes are in slices_[slice_],
  size_t within_ = 0;  // from here on.
  int64_t position_ = 0;
};

class WireReader {
 public:
  // The message must be smaller than 2 GiB.
  explicit WireReader(const MessageView& message);

  // Calls field(tag), which reads or skips that field, for each field up to the end.
  template <typename Field>
  bool ReadFields(Field field) {
    while (!AtEnd()) {
      uint32_t tag;
      if (!ReadTag(&tag) || !field(tag)) return false;
    }
    return true;
  }

  // The same for a submessage, whose tag has been read.
  template <typename Field>
  bool ReadMessage(Field field) {
    int size;
    if (!ReadLength(&size) || !input_.IncrementRecursionDepth()) return false;
    const auto outer = input_.PushLimit(size);
    if (!ReadFields(field)) return false;
    input_.PopLimit(outer);
    input_.DecrementRecursionDepth();
    return true;
  }

  // Values of scalar fields.
  bool ReadUint32(uint32_t* value) { return input_.ReadVarint32(value); }
  bool ReadUint64(uint64_t* value) { return input_.ReadVarint64(value); }
  bool ReadEnum(int32_t* value);
  bool ReadBool(bool* value);
  bool ReadFloat(float* value);
  bool ReadString(std::string* value);

  // Where a `bytes` value lies in the message; skips it.
  bool LocateBytes(size_t* offset, size_t* size);

  // Calls value() for each element of a packed field, which reads it.
  template <typename Value>
  bool ReadPacked(Value value) {
    int size;
    if (!ReadLength(&size)) return false;
    const auto outer = input_.PushLimit(size);
    while (!AtEnd()) {
      if (!value()) return false;
    }
    input_.PopLimit(outer);
    return true;
  }

  // An unknown field, whose tag has been read.
  bool Skip(uint32_t tag);

 private:
  // Of what is being read.  Exact, since there always is a limit; and inline, unlike
  // BytesUntilLimit, which packed fields notice.
  bool AtEnd() { return input_.ExpectAtEnd(); }

  bool ReadTag(uint32_t* tag);
  bool ReadLength(int* size);
  bool SkipGroup(uint32_t start_tag);

  SliceStream stream_;
  google::protobuf::io::CodedInputStream input_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_WIRE_READER_H_
