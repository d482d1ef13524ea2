//===- HttpServer.cpp - Connections, requests and answers -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpServer.h"

#include "Connection.h"
#include "sandwich/Support/Process.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

using namespace sandwich;

namespace asio = boost::asio;
using asio::redirect_error;
using asio::use_awaitable;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

//===----------------------------------------------------------------------===//
// Implementation
//===----------------------------------------------------------------------===//

class HttpServer::Implementation {
public:
  Implementation(HttpServerOptions options, HttpHandler handler)
      : shared{.options = std::move(options),
               .handler = std::move(handler),
               .context = context} {}
  ~Implementation() { stop(); }

  Status listen();
  Status start();
  void stop();
  void endConnections() {
    asio::post(*context, [this] { shared.ending = true; });
  }
  size_t connections() const { return count; }
  size_t answering() const { return shared.answering; }

  std::string address;
  uint16_t port = 0;
  bool isLocal = true;

private:
  template <typename Acceptor>
  Status open(Acceptor &acceptor,
              const typename Acceptor::endpoint_type &endpoint);
  Status listenLocally(const std::string &path);
  template <typename Acceptor> asio::awaitable<void> accept(Acceptor &acceptor);
  void welcome(HttpConnection::Socket socket, bool isLoopback);
  void tell(const ErrorCode &error);

  /// Shared with answers that are still made when the server has gone.
  std::shared_ptr<asio::io_context> context =
      std::make_shared<asio::io_context>(1);
  HttpConnections shared;
  std::optional<Tcp::acceptor> network;
  std::optional<Local::acceptor> local;
  std::atomic<size_t> count = 0;
  bool told = false;
  bool stopped = false;
  std::thread thread;
};

static bool isLoopbackAddress(const asio::ip::address &address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6())
        .is_loopback();
  return address.is_loopback();
}

template <typename Acceptor>
Status HttpServer::Implementation::open(
    Acceptor &acceptor, const typename Acceptor::endpoint_type &endpoint) {
  ErrorCode error;
  (void)acceptor.open(endpoint.protocol(), error);
  // A port is free again as soon as its last server has ended.
  if (!error)
    (void)acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error)
    (void)acceptor.bind(endpoint, error);
  if (!error)
    (void)acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return makeError("cannot listen: ", error.message());
  return {};
}

Status HttpServer::Implementation::listenLocally(const std::string &path) {
  ErrorCode error;
  std::error_code ignored;
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return makeError("a socket's path has 1 to ",
                     sizeof(sockaddr_un::sun_path) - 1, " bytes");
  const Local::endpoint endpoint(path);
  if (std::filesystem::is_socket(path, ignored)) {
    Local::socket probe(*context, endpoint.protocol());
    // Who listens and takes nobody now is there, too.
    (void)probe.native_non_blocking(true, error);
    const bool connected =
        ::connect(probe.native_handle(), endpoint.data(), endpoint.size()) == 0;
    const int reason = errno;
    if (connected || reason == EAGAIN)
      return makeError(path, ": another process listens there");
    if (reason != ECONNREFUSED)
      return makeError(path,
                       ": there is a socket, and whether a process "
                       "listens at it cannot be told: ",
                       std::generic_category().message(reason));
    std::filesystem::remove(path, ignored);
  }
  if (Status opened = open(local.emplace(*context), endpoint); !opened) {
    // What is there is somebody else's.
    local.reset();
    return opened.error().inContext(path);
  }
  address = "unix:" + path;
  return {};
}

Status HttpServer::Implementation::listen() {
  const HttpServerOptions &options = shared.options;
  if (options.unixSocket)
    return listenLocally(*options.unixSocket);
  ErrorCode error;
  Tcp::resolver resolver(*context);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), error);
  if (error || found.empty())
    return makeError(options.host,
                     ": no address of this machine: ", error.message());
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  if (Status opened = open(network.emplace(*context), endpoint); !opened)
    return opened.error().inContext(options.host + ":" +
                                    std::to_string(options.port));
  port = network->local_endpoint().port();
  isLocal = isLoopbackAddress(endpoint.address());
  std::string host = endpoint.address().to_string();
  if (endpoint.address().is_v6())
    host = "[" + host + "]";
  address = "http://" + host + ":" + std::to_string(port);
  return {};
}

Status HttpServer::Implementation::start() {
  if (network)
    asio::co_spawn(*context, accept(*network), asio::detached);
  if (local)
    asio::co_spawn(*context, accept(*local), asio::detached);
  const auto serve = [this] {
    // What a connection throws, as a rule for want of memory, ends that
    // connection.
    bool ended = false;
    while (!ended)
      runCatching(
          "serve a connection",
          [&] {
            context->run();
            ended = true;
          },
          [this](const char *reason) {
            report(shared.options.log, LogLevel::Warning, reason);
          });
  };
  SANDWICH_ASSIGN_OR_RETURN(thread, startThread("the server", serve));
  return {};
}

void HttpServer::Implementation::tell(const ErrorCode &error) {
  if (!std::exchange(told, true))
    report(shared.options.log, LogLevel::Warning,
           "cannot accept connections: " + error.message() +
               "; trying again until it works");
}

template <typename Acceptor>
asio::awaitable<void> HttpServer::Implementation::accept(Acceptor &acceptor) {
  asio::steady_timer pause(*context);
  while (acceptor.is_open()) {
    ErrorCode error;
    auto socket =
        co_await acceptor.async_accept(redirect_error(use_awaitable, error));
    if (!error) {
      told = false;
      bool isLoopback = false;
      if constexpr (std::is_same_v<Acceptor, Tcp::acceptor>) {
        ErrorCode ignored;
        (void)socket.set_option(Tcp::no_delay(true), ignored);
        isLoopback =
            isLoopbackAddress(socket.local_endpoint(ignored).address());
      }
      try {
        welcome(std::move(socket), isLoopback);
        continue;
      } catch (const std::exception &) {
        error = asio::error::no_memory;
      }
    }
    if (!acceptor.is_open())
      co_return;
    // A client that left already, or no memory or file descriptors: there may
    // be some again when others leave.
    if (error == asio::error::connection_aborted)
      continue;
    tell(error);
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(redirect_error(use_awaitable, error));
  }
}

void HttpServer::Implementation::welcome(HttpConnection::Socket socket,
                                         bool isLoopback) {
  // Accepted while the acceptor was being closed.
  if (stopped)
    return;
  const bool full = shared.open.size() >= shared.options.limits.connections;
  auto connection =
      std::make_shared<HttpConnection>(std::move(socket), isLoopback, shared);
  count = shared.open.size();
  asio::co_spawn(*context, full ? connection->refuse() : connection->serve(),
                 [this, connection](const std::exception_ptr &) mutable {
                   connection.reset();
                   count = shared.open.size();
                 });
}

void HttpServer::Implementation::stop() {
  if (thread.joinable()) {
    asio::post(*context, [this] {
      ErrorCode ignored;
      shared.ending = stopped = true;
      if (network)
        (void)network->close(ignored);
      if (local)
        (void)local->close(ignored);
      for (HttpConnection *connection : shared.open)
        connection->stop();
    });
    // All that is under way ends by itself: nothing waits without a timer or
    // a socket, and the sockets are closed.
    thread.join();
  }
  if (local && shared.options.unixSocket) {
    std::error_code ignored;
    std::filesystem::remove(*shared.options.unixSocket, ignored);
    local.reset();
  }
}

//===----------------------------------------------------------------------===//
// HttpServer
//===----------------------------------------------------------------------===//

HttpServer::HttpServer(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>>
HttpServer::create(HttpServerOptions options, HttpHandler handler) {
  auto made =
      std::make_unique<Implementation>(std::move(options), std::move(handler));
  SANDWICH_RETURN_IF_ERROR(made->listen());
  SANDWICH_RETURN_IF_ERROR(made->start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(made)));
}

const std::string &HttpServer::address() const {
  return implementation->address;
}

uint16_t HttpServer::port() const { return implementation->port; }

bool HttpServer::isLocal() const { return implementation->isLocal; }

size_t HttpServer::connections() const { return implementation->connections(); }

size_t HttpServer::answering() const { return implementation->answering(); }

void HttpServer::endConnections() { implementation->endConnections(); }

void HttpServer::stop() { implementation->stop(); }
