#include "tests/testing/breakable_connection.h"

#include "grpcpp/create_channel_posix.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace maxsimd {

BreakableConnection::BreakableConnection(const std::string& address) {
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  server.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), 0);
  const int copy = fcntl(socket_, F_DUPFD_CLOEXEC, 0);
  fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK);
  channel_ = grpc::CreateInsecureChannelFromFd("breakable", copy);
}

BreakableConnection::~BreakableConnection() {
  close(socket_);
}

void BreakableConnection::Break() {
  shutdown(socket_, SHUT_RDWR);
}

}  // namespace maxsimd
