#include "client/health.h"

#include <cstdint>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

namespace maxsimd {
namespace {

using ::google::protobuf::internal::WireFormatLite;
using ::google::protobuf::io::CodedInputStream;
using ::google::protobuf::io::CodedOutputStream;
using ::google::protobuf::io::StringOutputStream;

}  // namespace

grpc::ByteBuffer EncodeHealthRequest(const std::string& service) {
  std::string bytes;
  {
    StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    WireFormatLite::WriteString(1, service, &out);
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<ServingStatus> DecodeHealthResponse(grpc::ByteBuffer* response) {
  constexpr uint32_t kStatusTag = WireFormatLite::MakeTag(1, WireFormatLite::WIRETYPE_VARINT);
  grpc::ProtoBufferReader reader(response);
  CodedInputStream in(&reader);
  uint64_t status = 0;
  while (const uint32_t tag = in.ReadTag()) {
    const bool read =
        tag == kStatusTag ? in.ReadVarint64(&status) : WireFormatLite::SkipField(&in, tag);
    if (!read) return absl::InternalError("the server sent a malformed HealthCheckResponse");
  }
  if (!in.ConsumedEntireMessage()) {
    return absl::InternalError("the server sent a malformed HealthCheckResponse");
  }
  return status <= 3 ? static_cast<ServingStatus>(status) : ServingStatus::kUnknown;
}

}  // namespace maxsimd
