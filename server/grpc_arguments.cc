#include "server/grpc_arguments.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/resource_quota.h"
#include "spdlog/spdlog.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "grpc/compression.h"
#include "grpc/support/log.h"

namespace maxsimd {
namespace {

// What gRPC may hold beside the admitted messages: its own bookkeeping, and what 1,000 connections
// send before they are admitted.  The quota is the last resort (it resets innocent streams), so it
// lies above what admission lets in.
constexpr size_t kQuotaBeyondPending = size_t{1} << 30;

// What a stream may send before a read is outstanding: all that a call costs before it is admitted.
// A read lets the sender go on to the end of its message, so this does not bound the speed of large
// messages.  Probing the bandwidth-delay product instead let 200 calls of 60 MB that waited for
// admission hold 200 to 700 MB, against 75 MB with this, and was slower on loopback (1.51.1).
constexpr int kStreamLookaheadBytes = 256 << 10;

// Fewer and larger frames: 16 calls of 60 MB took 0.95 to 1.6 s, against 1.5 to 2.0 s with the
// default of 16 KiB (2 cores, client and server on loopback).
constexpr int kMaxFrameBytes = 1 << 20;

}  // namespace

void SetArguments(const Options& options, grpc::ServerBuilder& builder) {
  // Sizes are checked by the codec, whose message names the limit.
  builder.SetMaxReceiveMessageSize(-1);
  grpc::ResourceQuota quota("maxsimd");
  quota.Resize(options.max_pending_bytes + kQuotaBeyondPending);
  builder.SetResourceQuota(quota);

  // A compressed message could grow to any size before anything of ours sees it; embeddings don't
  // compress anyway.  gRPC answers UNIMPLEMENTED and says what it accepts.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);

  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                             0);  // Two servers never share a port unseen.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 128);  // Per connection.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamLookaheadBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 30'000);
}

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    spdlog::debug("grpc: {}:{}: {}", line->file, line->line, line->message);
  });
}

absl::Status CheckNotInUse(const std::string& address) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:")) return absl::OkStatus();
  sockaddr_un socket_address{};
  socket_address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(socket_address.sun_path)) {
    return absl::UnavailableError(absl::StrCat("--listen=", address, ": the path is too long"));
  }
  std::memcpy(socket_address.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return absl::OkStatus();
  const bool answered = connect(probe, reinterpret_cast<const sockaddr*>(&socket_address),
                                sizeof(socket_address)) == 0;
  close(probe);
  if (!answered) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--listen=", address, ": the address is in use"));
}

v1::GetServerInfoResponse MakeServerInfo(const Limits& limits,
                                         const std::vector<std::unique_ptr<Scorer>>& scorers) {
  v1::GetServerInfoResponse info;
  info.set_version(MAXSIMD_VERSION);
  info.set_backend(scorers.front()->backend());
  for (const std::unique_ptr<Scorer>& scorer : scorers) {
    for (const std::string& device : scorer->devices()) info.add_devices(device);
  }
  for (const v1::ElementType type :
       {v1::ELEMENT_TYPE_FLOAT32, v1::ELEMENT_TYPE_FLOAT16, v1::ELEMENT_TYPE_BFLOAT16}) {
    info.add_element_types(type);
  }
  v1::Limits& published = *info.mutable_limits();
  published.set_max_message_bytes(limits.max_message_bytes);
  published.set_max_stream_message_bytes(limits.max_stream_message_bytes);
  published.set_max_query_tokens(limits.max_query_tokens);
  published.set_max_document_tokens(limits.max_document_tokens);
  published.set_max_dim(limits.max_dim);
  published.set_max_documents_per_message(limits.max_documents_per_message);
  published.set_max_documents_per_stream(limits.max_documents_per_stream);
  published.set_max_id_bytes(limits.max_id_bytes);
  published.set_max_multiply_adds_per_message(limits.max_multiply_adds_per_message);
  published.set_max_held_result_bytes(limits.max_held_result_bytes);
  return info;
}

}  // namespace maxsimd
