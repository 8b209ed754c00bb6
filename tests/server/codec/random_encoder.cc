#include <utility>

#include "google/protobuf/descriptor.h"

#include "tests/server/codec/random_message.h"

namespace maxsimd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

enum WireType {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

std::string RandomBytes(size_t size, Random* random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// Writes the wire format, now and then in a longer form than needed.
class RandomEncoder {
 public:
  explicit RandomEncoder(Random* random) : random_(*random) {}

  std::string Encode(const Message& message) { return Join(Fields(message)); }

 private:
  using Lane = std::vector<std::string>;  // Encoded fields whose order matters.

  std::string Varint(uint64_t value, size_t max_bytes) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
    bytes.push_back(static_cast<char>(value));
    while (bytes.size() < max_bytes && OneIn(12, &random_)) {
      bytes.back() = static_cast<char>(bytes.back() | 0x80);
      bytes.push_back(0);
    }
    return bytes;
  }
  std::string Tag(int number, WireType type) {
    return Varint(static_cast<uint32_t>(number) << 3 | type, 5);
  }
  std::string Delimited(int number, const std::string& bytes) {
    return Tag(number, kLength) + Varint(bytes.size(), 5) + bytes;
  }

  // An unknown field; also one of a known number and the wrong type, which is unknown too.
  std::string Unknown(int depth) {
    const int number = OneIn(2, &random_) ? 1 + Below(8, &random_) : 1 + Below(1 << 20, &random_);
    switch (Below(depth > 3 ? 4 : 5, &random_)) {
      case 0:
        return Tag(number, kFixed64) + RandomBytes(8, &random_);
      case 1:
        return Tag(16 + number, kFixed32) + RandomBytes(4, &random_);
      case 2:
        return Tag(16 + number, kVarint) + Varint(random_(), 10);
      case 3:
        return Delimited(16 + number, RandomBytes(Below(20, &random_), &random_));
      default: {
        std::string group = Tag(number, kStartGroup);
        while (OneIn(2, &random_)) group += Unknown(depth + 1);
        return group + Tag(number, kEndGroup);
      }
    }
  }

  // Merges the lanes in a random order that keeps each lane's own.
  Lane Merge(std::vector<Lane> lanes) {
    Lane merged;
    std::vector<std::pair<size_t, size_t>> next;  // Of each lane that has some left.
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (!lanes[i].empty()) next.push_back({i, 0});
    }
    while (!next.empty()) {
      const size_t pick = Below(static_cast<uint32_t>(next.size()), &random_);
      auto& [lane, at] = next[pick];
      merged.push_back(lanes[lane][at++]);
      if (at == lanes[lane].size()) next.erase(next.begin() + pick);
    }
    return merged;
  }

  std::string Join(const Lane& fields) {
    std::string bytes;
    for (const std::string& field : fields) bytes += field;
    return bytes;
  }

  Lane Fields(const Message& message) {
    std::vector<Lane> lanes;
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      lanes.push_back(field->is_repeated() ? Repeated(message, *field) : Singular(message, *field));
    }
    Lane unknown;
    while (OneIn(4, &random_)) unknown.push_back(Unknown(0));
    lanes.push_back(std::move(unknown));
    return Merge(std::move(lanes));
  }

  Lane Singular(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return InParts(field.number(), Fields(reflection.GetMessage(message, &field)));
    }
    Lane lane;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      while (OneIn(8, &random_)) lane.push_back(Delimited(field.number(), "overridden"));
      lane.push_back(Delimited(field.number(), reflection.GetString(message, &field)));
      return lane;
    }
    while (OneIn(8, &random_)) lane.push_back(VarintField(field.number(), random_()));
    lane.push_back(VarintField(field.number(), Scalar(message, field)));
    return lane;
  }

  std::string VarintField(int number, uint64_t value) {
    return Tag(number, kVarint) + Varint(value, 10);
  }

  uint64_t Scalar(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.GetBool(message, &field) ? 1 + (uint64_t{random_()} << 32) : 0;
      case FieldDescriptor::CPPTYPE_ENUM:
        return static_cast<int64_t>(reflection.GetEnumValue(message, &field));
      default:  // The upper half of a uint32 is cut off.
        return reflection.GetUInt32(message, &field) |
               (OneIn(8, &random_) ? uint64_t{random_()} << 32 : 0);
    }
  }

  // A submessage that comes in several parts merges.
  Lane InParts(int number, const Lane& fields) {
    Lane lane;
    size_t begin = 0;
    do {
      size_t end = fields.size();
      if (begin < end && OneIn(3, &random_)) {
        end = begin + Below(static_cast<uint32_t>(end - begin), &random_);
      }
      lane.push_back(Delimited(number, Join(Lane(fields.begin() + begin, fields.begin() + end))));
      begin = end;
    } while (begin < fields.size());
    return lane;
  }

  Lane Repeated(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const int count = reflection.FieldSize(message, &field);
    Lane lane;
    std::string packed;
    bool pack = false;
    for (int i = 0; i < count; ++i) {
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        lane.push_back(Delimited(field.number(), reflection.GetRepeatedString(message, &field, i)));
        continue;
      }
      if (i == 0 || OneIn(4, &random_)) {
        if (pack) lane.push_back(Delimited(field.number(), std::exchange(packed, "")));
        pack = OneIn(2, &random_);
      }
      const auto [type, value] = Element(message, field, i);
      if (pack) {
        packed += value;
      } else {
        lane.push_back(Tag(field.number(), type) + value);
      }
    }
    if (pack) lane.push_back(Delimited(field.number(), packed));
    return lane;
  }

  std::pair<WireType, std::string> Element(const Message& message, const FieldDescriptor& field,
                                           int i) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_FLOAT: {
        const float value = reflection.GetRepeatedFloat(message, &field, i);
        return {kFixed32, std::string(reinterpret_cast<const char*>(&value), sizeof(value))};
      }
      case FieldDescriptor::CPPTYPE_UINT64:
        return {kVarint, Varint(reflection.GetRepeatedUInt64(message, &field, i), 10)};
      default:
        return {kVarint, Varint(reflection.GetRepeatedUInt32(message, &field, i), 10)};
    }
  }

  Random& random_;
};

}  // namespace

std::string EncodeRandomly(const Message& message, Random* random) {
  return RandomEncoder(random).Encode(message);
}

}  // namespace maxsimd
