#include "server/codec/wire_reader.h"

#include <algorithm>

namespace maxsimd {
namespace {

constexpr int kMaxTagBytes = 5;  // 32 bits in groups of 7; a length likewise.
constexpr int kFixed64Bytes = 8;
constexpr int kFixed32Bytes = 4;

}  // namespace

bool SliceStream::Next(const void** data, int* size) {
  while (slice_ < slices_.size() && within_ == slices_[slice_].size()) {
    ++slice_;
    within_ = 0;
  }
  if (slice_ == slices_.size()) return false;
  const MessageView::Slice rest = slices_[slice_].subspan(within_);
  *data = rest.data();
  *size = static_cast<int>(rest.size());
  within_ += rest.size();  // Stays at this slice's end, so that BackUp finds it.
  position_ += *size;
  return true;
}

void SliceStream::BackUp(int count) {
  within_ -= count;
  position_ -= count;
}

bool SliceStream::Skip(int count) {
  const void* data;
  int size;
  while (count > 0) {
    if (!Next(&data, &size)) return false;
    if (size > count) BackUp(size - count);
    count -= std::min(size, count);
  }
  return true;
}

WireReader::WireReader(const MessageView& message) : stream_(message), input_(&stream_) {
  input_.PushLimit(static_cast<int>(message.size()));
}

bool WireReader::ReadTag(uint32_t* tag) {
  const int begin = input_.CurrentPosition();
  if (!input_.ReadVarint32(tag) || input_.CurrentPosition() - begin > kMaxTagBytes) return false;
  return WireFormatLite::GetTagFieldNumber(*tag) != 0;
}

bool WireReader::ReadLength(int* size) {
  const int begin = input_.CurrentPosition();
  if (!input_.ReadVarintSizeAsInt(size) || input_.CurrentPosition() - begin > kMaxTagBytes) {
    return false;
  }
  return *size <= input_.BytesUntilLimit();  // PushLimit would only clamp it.
}

bool WireReader::ReadEnum(int32_t* value) {
  uint32_t bits;
  if (!input_.ReadVarint32(&bits)) return false;
  *value = static_cast<int32_t>(bits);
  return true;
}

bool WireReader::ReadBool(bool* value) {
  uint64_t bits;
  if (!input_.ReadVarint64(&bits)) return false;
  *value = bits != 0;
  return true;
}

bool WireReader::ReadFloat(float* value) {
  uint32_t bits;
  if (!input_.ReadLittleEndian32(&bits)) return false;
  *value = WireFormatLite::DecodeFloat(bits);
  return true;
}

bool WireReader::ReadString(std::string* value) {
  int size;
  return ReadLength(&size) && input_.ReadString(value, size);
}

bool WireReader::LocateBytes(size_t* offset, size_t* size) {
  int length;
  if (!ReadLength(&length)) return false;
  *offset = input_.CurrentPosition();
  *size = length;
  return input_.Skip(length);
}

bool WireReader::Skip(uint32_t tag) {
  uint64_t ignored;
  size_t offset;
  size_t size;
  switch (WireFormatLite::GetTagWireType(tag)) {
    case WireFormatLite::WIRETYPE_VARINT:
      return input_.ReadVarint64(&ignored);
    case WireFormatLite::WIRETYPE_FIXED64:
      return input_.Skip(kFixed64Bytes);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return LocateBytes(&offset, &size);
    case WireFormatLite::WIRETYPE_START_GROUP:
      return SkipGroup(tag);
    case WireFormatLite::WIRETYPE_FIXED32:
      return input_.Skip(kFixed32Bytes);
    case WireFormatLite::WIRETYPE_END_GROUP:  // Of no group that began.
      break;
  }
  return false;
}

bool WireReader::SkipGroup(uint32_t start_tag) {
  if (!input_.IncrementRecursionDepth()) return false;
  const uint32_t end_tag = WireFormatLite::MakeTag(WireFormatLite::GetTagFieldNumber(start_tag),
                                                   WireFormatLite::WIRETYPE_END_GROUP);
  while (!AtEnd()) {
    uint32_t tag;
    if (!ReadTag(&tag)) return false;
    if (tag == end_tag) {
      input_.DecrementRecursionDepth();
      return true;
    }
    if (!Skip(tag)) return false;
  }
  return false;
}

}  // namespace maxsimd
