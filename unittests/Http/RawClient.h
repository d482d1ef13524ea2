//===- RawClient.h - A client that says what it is told ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A socket on which tests send any bytes, HTTP or not.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_HTTP_RAWCLIENT_H
#define SANDWICH_UNITTESTS_HTTP_RAWCLIENT_H

#include <arpa/inet.h>
#include <cstdint>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace sandwich {

class RawClient {
public:
  explicit RawClient(uint16_t port) : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(reinterpret_cast<const sockaddr *>(&address), sizeof(address));
  }
  explicit RawClient(const std::string &path)
      : fd(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connect(reinterpret_cast<const sockaddr *>(&address), sizeof(address));
  }
  /// A socket that is connected already.
  struct Accepted {
    int fd;
  };
  explicit RawClient(Accepted socket)
      : fd(socket.fd), connected(socket.fd >= 0) {}
  RawClient(const RawClient &) = delete;
  RawClient(RawClient &&other) noexcept
      : fd(std::exchange(other.fd, -1)), connected(other.connected),
        rest(std::move(other.rest)) {}
  ~RawClient() { leave(); }

  bool isConnected() const { return connected; }

  void leave() {
    if (fd >= 0)
      ::close(std::exchange(fd, -1));
  }
  void stopSending() { ::shutdown(fd, SHUT_WR); }

  /// Whether all of it was taken.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0)
        return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  /// Up to and with `mark`; all there was where the connection ends first, or
  /// nothing comes for ten seconds.
  std::string readUntil(std::string_view mark) {
    size_t found;
    while ((found = rest.find(mark)) == std::string::npos)
      if (!receive())
        return std::exchange(rest, {});
    std::string text = rest.substr(0, found + mark.size());
    rest.erase(0, found + mark.size());
    return text;
  }
  /// Until the server ends the connection.
  std::string readAll() {
    while (receive()) {
    }
    return std::exchange(rest, {});
  }
  /// A response that has a Content-Length.
  std::string readResponse() {
    std::string text = readUntil("\r\n\r\n");
    const size_t length = text.find("Content-Length: ");
    if (length == std::string::npos)
      return text;
    const size_t size = std::stoul(text.substr(length + 16));
    while (rest.size() < size && receive()) {
    }
    text += rest.substr(0, size);
    rest.erase(0, size);
    return text;
  }

private:
  void connect(const sockaddr *address, socklen_t size) {
    connected = ::connect(fd, address, size) == 0;
  }
  bool receive() {
    pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
    char bytes[4096];
    if (::poll(&waiting, 1, 10'000) <= 0)
      return false;
    const ssize_t count = ::recv(fd, bytes, sizeof(bytes), 0);
    if (count <= 0)
      return false;
    rest.append(bytes, static_cast<size_t>(count));
    return true;
  }

  int fd;
  bool connected = false;
  std::string rest;
};

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_HTTP_RAWCLIENT_H
