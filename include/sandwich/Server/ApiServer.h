//===- ApiServer.h - The API over HTTP --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// OpenAI's API over the services of some models: `/v1/completions`,
/// `/v1/chat/completions` and what belongs to them. `docs/Serving.md` tells
/// operators about it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVER_APISERVER_H
#define SANDWICH_SERVER_APISERVER_H

#include "sandwich/Http/HttpServer.h"
#include "sandwich/Server/AllowedHosts.h"
#include "sandwich/Server/ApiKeys.h"
#include "sandwich/Server/RequestLog.h"
#include "sandwich/Server/ServedModel.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sandwich {

struct ApiServerOptions {
  /// `describeError` and `log` are the server's.
  HttpServerOptions http;
  /// At least one, with different names.
  std::vector<ServedModelOptions> models;
  /// Other names: alias to name.
  std::map<std::string, std::string> aliases = {};
  ApiKeys keys = {};
  /// Where it is asked without a key, by clients on its own machine, or by all
  /// if there are names among them.
  AllowedHosts allowedHosts = {};
  /// Null: no lines for requests.
  std::unique_ptr<RequestLog> requestLog = {};
  /// Whether those lines have the prompts.
  bool logsPrompts = false;
  /// Threads that read requests, tokenize and render.
  unsigned workers = 2;
  /// A model with requests of which no step ends for so long is told as
  /// stalled, in the log and by `/health`.
  double stallSeconds = 60;
  LogCallback log = {};
};

/// Answers from `create` on, at first that the models are loading.
class ApiServer {
public:
  /// Errors: an address that cannot be listened at; names that are empty, too
  /// long or given twice; aliases of models that are not there.
  static Result<std::unique_ptr<ApiServer>> create(ApiServerOptions options);

  ApiServer(const ApiServer &) = delete;
  ApiServer &operator=(const ApiServer &) = delete;
  /// Ends all requests at once.
  ~ApiServer();

  /// See `HttpServer::address`.
  const std::string &address() const;

  /// Whether other machines can ask it, and need no key.
  bool isOpenToAll() const;

  /// Loads the models one after another. Error: of the first that fails.
  Status load();

  /// To be called a few times a second: tells of models that stall.
  void tick();

  /// Error: all models have failed while they were served, and no request will
  /// be answered any more.
  Status check() const;

  /// Takes no more requests, waits at most `seconds` until those that are there
  /// have ended, and ends the others with an error. Whether all ended by
  /// themselves.
  bool drain(double seconds);

  /// Ends all connections, and there are no new ones.
  void stop();

private:
  class Implementation;
  explicit ApiServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace sandwich

#endif // SANDWICH_SERVER_APISERVER_H
