//===- HttpServerFuzzer.cpp - Any bytes on a connection -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpServer.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

/// Paths choose what is done with a request.
static void handle(HttpRequest request,
                   std::shared_ptr<HttpExchange> exchange) {
  check(request.body.size() <= 4096);
  if (request.path == "/drop")
    return;
  if (request.path == "/stream") {
    exchange->begin({.contentType = "text/event-stream"}, ":\n\n");
    for (int i = 0; i < 3; ++i)
      exchange->write("data: x\n\n");
    exchange->finish();
    return;
  }
  (void)exchange->respond({.body = request.method + request.body});
}

static const std::string &address() {
  static std::string path;
  static std::unique_ptr<HttpServer> server;
  if (server)
    return path;
  path = "/tmp/sandwich-fuzzer-" + std::to_string(::getpid());
  HttpServerOptions options;
  options.unixSocket = path;
  options.limits = {.headerBytes = 2048, .bodyBytes = 4096};
  auto created = HttpServer::create(std::move(options), handle);
  check(bool(created));
  server = *std::move(created);
  std::atexit([] { server.reset(); });
  return path;
}

static int connect() {
  sockaddr_un target = {};
  target.sun_family = AF_UNIX;
  address().copy(target.sun_path, sizeof(target.sun_path) - 1);
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(client >= 0);
  check(::connect(client, reinterpret_cast<const sockaddr *>(&target),
                  sizeof(target)) == 0);
  return client;
}

/// The bytes come in two pieces, the first as long as the first byte says. Then
/// the client waits for the end: there is one, and all that the server says is
/// HTTP.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const size_t first = std::min<size_t>(*data, size - 1);
  ++data;
  --size;
  const int client = connect();
  // The server may have ended the connection by then.
  if (first > 0)
    (void)::send(client, data, first, MSG_NOSIGNAL);
  if (size > first)
    (void)::send(client, data + first, size - first, MSG_NOSIGNAL);
  ::shutdown(client, SHUT_WR);
  std::string answer;
  char bytes[4096];
  for (ssize_t count; (count = ::recv(client, bytes, sizeof(bytes), 0)) > 0;)
    answer.append(bytes, static_cast<size_t>(count));
  ::close(client);
  check(answer.empty() || answer.starts_with("HTTP/1."));
  return 0;
}
