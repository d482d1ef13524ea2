//===- RawServer.h - A server that says what it is told ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A listening socket on which tests answer with any bytes, HTTP or not.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_HTTP_RAWSERVER_H
#define SANDWICH_UNITTESTS_HTTP_RAWSERVER_H

#include "RawClient.h"

#include <cstdlib>
#include <optional>

namespace sandwich {

/// Listens at a port of the loopback interface that was free.
class RawServer {
public:
  explicit RawServer(int backlog = 64) : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto *plain = reinterpret_cast<sockaddr *>(&address);
    if (::bind(fd, plain, size) != 0 || ::listen(fd, backlog) != 0 ||
        ::getsockname(fd, plain, &size) != 0)
      std::abort();
    number = ntohs(address.sin_port);
  }
  RawServer(const RawServer &) = delete;
  RawServer &operator=(const RawServer &) = delete;
  ~RawServer() { ::close(fd); }

  uint16_t port() const { return number; }

  /// The next connection; nothing where none comes for ten seconds.
  std::optional<RawClient> accept() {
    pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, 10'000) <= 0)
      return std::nullopt;
    return RawClient(RawClient::Accepted{::accept(fd, nullptr, nullptr)});
  }

private:
  const int fd;
  uint16_t number = 0;
};

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_HTTP_RAWSERVER_H
