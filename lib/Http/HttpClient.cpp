//===- HttpClient.cpp - Many requests to one server -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpClient.h"

#include "ClientConnection.h"
#include "sandwich/Support/Process.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <future>
#include <map>
#include <sys/un.h>
#include <thread>

using namespace sandwich;

namespace asio = boost::asio;
using asio::redirect_error;
using asio::use_awaitable;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

//===----------------------------------------------------------------------===//
// HttpAddress
//===----------------------------------------------------------------------===//

/// Of visible ASCII only: what else there may be would end up in headers.
static bool isPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

static Result<HttpAddress> parseUnixSocket(std::string_view path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) ||
      path.find('\0') != std::string_view::npos)
    return makeError("a socket's path has 1 to ",
                     sizeof(sockaddr_un::sun_path) - 1, " bytes");
  HttpAddress address;
  address.host = "localhost";
  address.unixSocket = std::string(path);
  return address;
}

/// Takes "host", "host:port", "[v6]" or "[v6]:port" apart.
static Status parseAuthority(std::string_view text, HttpAddress &address) {
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos)
      return makeError("its host has no closing bracket");
    address.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (!text.empty() && text.front() != ':')
      return makeError("what follows its host is no port");
    ErrorCode error;
    (void)asio::ip::make_address_v6(address.host, error);
    if (error)
      return makeError("'", address.host, "' is no address of IPv6");
    port = text;
  } else {
    const size_t colon = text.find(':');
    address.host = text.substr(0, colon);
    port = colon == std::string_view::npos ? "" : text.substr(colon);
  }
  if (address.host.empty())
    return makeError("it has no host");
  if (port.empty())
    return {};
  port.remove_prefix(1);
  const auto [rest, error] =
      std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || rest != port.data() + port.size() ||
      address.port == 0)
    return makeError("'", port, "' is no port from 1 to 65535");
  return {};
}

Result<HttpAddress> HttpAddress::parse(std::string_view url) {
  const auto fail = [&](const auto &...parts) {
    return makeError("'", url, "' is no address of a server: ", parts...);
  };
  constexpr std::string_view unixScheme = "unix:", scheme = "http://";
  if (url.starts_with(unixScheme)) {
    Result<HttpAddress> address =
        parseUnixSocket(url.substr(unixScheme.size()));
    return address ? address : fail(address.error().message);
  }
  if (url.starts_with("https://"))
    return fail("TLS is not supported; http:// reaches a server, or a proxy "
                "that ends TLS");
  if (!url.starts_with(scheme))
    return fail("it begins with neither http:// nor unix:");
  if (!isPlain(url))
    return fail("it holds spaces or bytes that are not ASCII");
  std::string_view rest = url.substr(scheme.size());
  if (rest.find_first_of("?#@") != std::string_view::npos)
    return fail("it may have a host, a port and a path, and nothing else");
  HttpAddress address;
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos)
    address.basePath = rest.substr(slash);
  while (address.basePath.ends_with('/'))
    address.basePath.pop_back();
  if (Status parsed = parseAuthority(rest.substr(0, slash), address); !parsed)
    return fail(parsed.error().message);
  return address;
}

std::string HttpAddress::authority() const {
  std::string text =
      host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (!unixSocket && port != 80)
    text += ":" + std::to_string(port);
  return text;
}

//===----------------------------------------------------------------------===//
// Implementation
//===----------------------------------------------------------------------===//

/// Held by each call that is under way, so that these may outlive the client.
class HttpClient::Implementation
    : public std::enable_shared_from_this<Implementation> {
public:
  explicit Implementation(HttpClientOptions options)
      : options(std::move(options)),
        ownContext(std::make_unique<asio::io_context>(1)), context(*ownContext),
        untilClosed(context.get_executor()) {}
  Implementation(HttpClientOptions options, EventLoop &loop)
      : options(std::move(options)), context(*loop.context), loop(&loop) {}

  HttpCallId send(HttpRequest request, HttpCallbacks callbacks);
  void cancel(HttpCallId id);
  /// Ends all that is under way, and tells of it if `tells`.
  void close(bool tells);

  const HttpClientOptions options;
  /// With a thread of its own.
  const std::unique_ptr<asio::io_context> ownContext;
  asio::io_context &context;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>>
      untilClosed;
  std::thread thread;
  /// Without one.
  EventLoop *const loop = nullptr;

private:
  using Connection = std::unique_ptr<ClientConnection>;
  using SharedCall = std::shared_ptr<HttpCall>;

  void start(const SharedCall &call);
  void spawn(const SharedCall &call);
  void leaveQueue(HttpCallId id);
  void finish(const SharedCall &call);
  asio::awaitable<void> serve(SharedCall call);
  /// Null: `call` has failed.
  asio::awaitable<Connection> connect(HttpCall &call);
  asio::awaitable<bool> resolve(HttpCall &call);
  Connection takeUnused();
  void keep(Connection connection);

  std::atomic<HttpCallId> lastId = 0;
  // Of the loop.
  ClientConnection::Endpoints endpoints;
  std::vector<Connection> unused;
  std::map<HttpCallId, SharedCall> calls;
  std::deque<SharedCall> waiting;
  size_t underWay = 0;
  bool closed = false;
};

/// Whether a request can be written without becoming two.
static bool isClean(const HttpRequest &request) {
  const auto isName = [](std::string_view text) {
    return !text.empty() && isPlain(text) &&
           text.find(':') == std::string_view::npos;
  };
  const auto isValue = [](std::string_view text) {
    return std::ranges::none_of(
        text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  };
  return isName(request.method) && request.path.starts_with('/') &&
         isPlain(request.path) && isPlain(request.query) &&
         std::ranges::all_of(request.headers, [&](const auto &header) {
           return isName(header.first) && isValue(header.second);
         });
}

HttpCallId HttpClient::Implementation::send(HttpRequest request,
                                            HttpCallbacks callbacks) {
  const HttpCallId id = ++lastId;
  auto call = std::make_shared<HttpCall>(context, id, std::move(request),
                                         std::move(callbacks), options.limits);
  asio::post(context, [self = shared_from_this(), call] {
    if (!self->closed)
      self->start(call);
  });
  return id;
}

void HttpClient::Implementation::start(const SharedCall &call) {
  calls.emplace(call->id(), call);
  call->begin();
  if (!isClean(call->request()))
    call->fail(HttpFailureKind::Protocol,
               "the request's method, path or headers hold what would change "
               "its meaning");
  else
    call->enterPhase(options.limits.totalSeconds,
                     "no connection became free in time");
  if (call->failure() || underWay < options.limits.connections) {
    spawn(call);
    return;
  }
  waiting.push_back(call);
  // Whoever ends it may be in the middle of the queue.
  call->interruptWith([weak = weak_from_this(), id = call->id()] {
    if (const auto self = weak.lock())
      asio::post(self->context, [self, id] { self->leaveQueue(id); });
  });
}

void HttpClient::Implementation::leaveQueue(HttpCallId id) {
  const auto found = std::ranges::find(
      waiting, id, [](const SharedCall &call) { return call->id(); });
  if (found == waiting.end())
    return;
  const SharedCall call = std::move(*found);
  waiting.erase(found);
  calls.erase(id);
  call->tellEnd();
}

void HttpClient::Implementation::spawn(const SharedCall &call) {
  ++underWay;
  asio::co_spawn(
      context, serve(call),
      [self = shared_from_this(), call](const std::exception_ptr &thrown) {
        call->use(nullptr);
        if (thrown)
          call->fail(HttpFailureKind::Cancelled, "there is not enough memory");
        self->finish(call);
      });
}

void HttpClient::Implementation::finish(const SharedCall &call) {
  --underWay;
  calls.erase(call->id());
  call->tellEnd();
  while (!closed && !waiting.empty() && underWay < options.limits.connections) {
    const SharedCall next = std::move(waiting.front());
    waiting.pop_front();
    spawn(next);
  }
}

void HttpClient::Implementation::cancel(HttpCallId id) {
  asio::post(context, [self = shared_from_this(), id] {
    if (const auto found = self->calls.find(id); found != self->calls.end())
      found->second->fail(HttpFailureKind::Cancelled,
                          "the request was cancelled");
  });
}

void HttpClient::Implementation::close(bool tells) {
  closed = true;
  for (const auto &[id, call] : calls) {
    if (tells)
      call->fail(HttpFailureKind::Cancelled, "the client has gone");
    else
      call->forget();
  }
  for (const SharedCall &call : std::exchange(waiting, {})) {
    calls.erase(call->id());
    call->tellEnd();
  }
  unused.clear();
}

HttpClient::Implementation::Connection
HttpClient::Implementation::takeUnused() {
  const auto oldest =
      HttpCall::Clock::now() -
      std::chrono::duration_cast<HttpCall::Clock::duration>(
          std::chrono::duration<double>(options.limits.idleSeconds));
  while (!unused.empty()) {
    Connection connection = std::move(unused.back());
    unused.pop_back();
    if (connection->unusedSince > oldest && connection->isUsable())
      return connection;
  }
  return nullptr;
}

void HttpClient::Implementation::keep(Connection connection) {
  if (closed)
    return;
  connection->unusedSince = HttpCall::Clock::now();
  unused.push_back(std::move(connection));
}

asio::awaitable<bool> HttpClient::Implementation::resolve(HttpCall &call) {
  const HttpAddress &server = options.server;
  if (server.unixSocket) {
    endpoints.emplace_back(Local::endpoint(*server.unixSocket));
    co_return true;
  }
  ErrorCode error;
  const asio::ip::address numbers = asio::ip::make_address(server.host, error);
  if (!error) {
    endpoints.emplace_back(Tcp::endpoint(numbers, server.port));
    co_return true;
  }
  auto resolver = std::make_shared<Tcp::resolver>(context);
  call.interruptWith([resolver] { resolver->cancel(); });
  const auto found =
      co_await resolver->async_resolve(server.host, std::to_string(server.port),
                                       redirect_error(use_awaitable, error));
  if (call.failure())
    co_return false;
  if (error) {
    call.fail(HttpFailureKind::NotConnected,
              server.host + ": no such host: " + error.message());
    co_return false;
  }
  // Another call may have asked at the same time.
  if (endpoints.empty())
    for (const auto &each : found)
      endpoints.emplace_back(each.endpoint());
  co_return true;
}

asio::awaitable<HttpClient::Implementation::Connection>
HttpClient::Implementation::connect(HttpCall &call) {
  call.enterPhase(options.limits.connectSeconds,
                  "no connection was made in time");
  if (endpoints.empty())
    if (!co_await resolve(call))
      co_return nullptr;
  auto connection = std::make_unique<ClientConnection>(context);
  if (!co_await connection->connect(call, endpoints, options.server)) {
    call.use(nullptr);
    co_return nullptr;
  }
  co_return connection;
}

asio::awaitable<void> HttpClient::Implementation::serve(SharedCall call) {
  while (!call->failure()) {
    Connection connection = takeUnused();
    const bool wasUsed = connection != nullptr;
    if (!connection)
      connection = co_await connect(*call);
    if (!connection)
      co_return;
    const ClientConnection::Ending ending =
        co_await connection->carry(*call, options.server);
    call->use(nullptr);
    if (ending == ClientConnection::Ending::Reusable)
      keep(std::move(connection));
    if (ending != ClientConnection::Ending::Unanswered)
      co_return;
    if (!wasUsed || !options.resendUnanswered)
      call->fail(HttpFailureKind::Broken,
                 "the server ended the connection without an answer");
    // None of the others is better; and each request is sent twice at most.
    unused.clear();
  }
}

//===----------------------------------------------------------------------===//
// HttpClient
//===----------------------------------------------------------------------===//

HttpClient::HttpClient(std::shared_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

HttpClient::~HttpClient() {
  if (implementation->loop) {
    implementation->close(/*tells=*/false);
    return;
  }
  // What was posted before, cancelled calls among it, still runs; the context
  // has nothing to wait for once they have ended.
  asio::post(implementation->context, [state = implementation.get()] {
    state->close(/*tells=*/true);
    state->untilClosed.reset();
  });
  implementation->thread.join();
}

Result<std::unique_ptr<HttpClient>>
HttpClient::create(HttpClientOptions options) {
  auto made = std::make_shared<Implementation>(std::move(options));
  SANDWICH_ASSIGN_OR_RETURN(
      made->thread,
      startThread("the client",
                  [context = made->ownContext.get()] { context->run(); }));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(made)));
}

std::unique_ptr<HttpClient> HttpClient::create(HttpClientOptions options,
                                               EventLoop &loop) {
  return std::unique_ptr<HttpClient>(new HttpClient(
      std::make_shared<Implementation>(std::move(options), loop)));
}

HttpCallId HttpClient::send(HttpRequest request, HttpCallbacks callbacks) {
  return implementation->send(std::move(request), std::move(callbacks));
}

void HttpClient::cancel(HttpCallId id) { implementation->cancel(id); }

namespace {
/// An answer that is waited for.
struct AwaitedAnswer {
  HttpAnswer answer;
  std::optional<HttpFailure> failure;
  std::atomic<bool> isOver = false;
  std::promise<void> ended;
};
} // namespace

static HttpCallbacks fill(const std::shared_ptr<AwaitedAnswer> &awaited,
                          size_t mostBytes) {
  return {.onHead =
              [awaited](const HttpResponseHead &head) {
                awaited->answer.head = head;
              },
          .onBody =
              [awaited, mostBytes](std::string_view piece) {
                std::string &body = awaited->answer.body;
                if (piece.size() > mostBytes - body.size())
                  return false;
                body += piece;
                return true;
              },
          .onEnd =
              [awaited](const HttpFailure *reason) {
                if (reason)
                  awaited->failure = *reason;
                awaited->isOver = true;
                awaited->ended.set_value();
              }};
}

/// Returns whether the answer is there before `stop` says that nobody waits.
static bool wait(AwaitedAnswer &awaited, EventLoop *loop,
                 const std::function<bool()> &stop) {
  if (loop)
    return loop->runUntil([&] { return awaited.isOver.load(); }, stop);
  const std::future<void> ended = awaited.ended.get_future();
  while (ended.wait_for(std::chrono::milliseconds(100)) !=
         std::future_status::ready)
    if (stop && stop())
      return false;
  return true;
}

Result<HttpAnswer> HttpClient::ask(HttpRequest request, size_t mostBytes,
                                   const std::function<bool()> &stop) {
  // Of the callbacks, too, which may not have returned when this does.
  const auto awaited = std::make_shared<AwaitedAnswer>();
  const HttpCallId id = send(std::move(request), fill(awaited, mostBytes));
  if (!wait(*awaited, implementation->loop, stop)) {
    cancel(id);
    return makeError(ErrorKind::Cancelled, "interrupted");
  }
  if (!awaited->failure)
    return std::move(awaited->answer);
  if (awaited->failure->kind == HttpFailureKind::Cancelled)
    return makeError("the answer has more than ", mostBytes, " bytes");
  return makeError(awaited->failure->message);
}
