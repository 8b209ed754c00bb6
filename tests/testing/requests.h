// Requests to send: made up, or from tests/cases/; and the same documents cut into other messages.
#ifndef MAXSIMD_TESTS_TESTING_REQUESTS_H_
#define MAXSIMD_TESTS_TESTING_REQUESTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"

#include "maxsimd/v1/rerank.pb.h"
#include "tests/testing/case_files.h"

namespace maxsimd {

struct Shape {
  v1::ElementType element_type = v1::ELEMENT_TYPE_FLOAT16;
  uint32_t dim = 16;
  uint32_t query_tokens = 4;
  std::vector<uint32_t> lengths = {3, 5};  // Back to back.
  uint64_t seed = 1;
};

// Values in [-1, 1), the same for the same shape.
v1::RerankRequest MakeRequest(const Shape& shape);

// As many documents of `length` tokens each.
v1::RerankRequest MakeUniformRequest(uint32_t documents, uint32_t length, Shape shape = {});

v1::RerankRequest ToRequest(const CaseFile& file);

// A message of RerankStream that starts a stream with the request, or goes on with its documents.
grpc::ByteBuffer StreamStart(const v1::RerankRequest& request);
grpc::ByteBuffer StreamChunk(const v1::RerankRequest& request);

// The request in messages of RerankStream: documents [0, cuts[0]) with the start, and so on to the
// last document.  Each message holds only the rows that its documents need.
std::vector<v1::RerankStreamRequest> Cut(const v1::RerankRequest& request,
                                         const std::vector<int>& cuts);
// At random places; messages without documents occur.
std::vector<v1::RerankStreamRequest> CutAnywhere(const v1::RerankRequest& request,
                                                 std::mt19937& random);

// The message as odd-sized slices.
grpc::ByteBuffer SliceAnywhere(const std::string& bytes, std::mt19937& random);

template <typename Message>
std::vector<grpc::ByteBuffer> ToSlicedBuffers(const std::vector<Message>& messages,
                                              std::mt19937& random) {
  std::vector<grpc::ByteBuffer> buffers;
  for (const Message& message : messages) {
    buffers.push_back(SliceAnywhere(message.SerializeAsString(), random));
  }
  return buffers;
}

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_REQUESTS_H_
