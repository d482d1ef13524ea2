//===- TargetServer.h - The server that is measured -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A server that speaks OpenAI's API: what it is found to take, and requests to
/// it whose answers are timed.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LOADTEST_TARGETSERVER_H
#define SANDWICH_LOADTEST_TARGETSERVER_H

#include "sandwich/Http/EventLoop.h"
#include "sandwich/Http/HttpClient.h"
#include "sandwich/LoadTest/PromptMaker.h"
#include "sandwich/Runtime/Measurement/ServedRequest.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace sandwich {

enum class Endpoint { Completions, Chat };

struct TargetOptions {
  /// Where its API begins; "/v1" where it has no path.
  HttpAddress address;
  /// Empty: the first one that the server lists.
  std::string model;
  Endpoint endpoint = Endpoint::Completions;
  PromptOptions prompts;
  /// Whether to ask that texts go on behind their end, so that they have the
  /// length that is asked for. Nothing: where the server takes it.
  std::optional<bool> ignoreEndOfText;
  /// Whether to ask for numbers of tokens. Nothing: where the server takes it.
  std::optional<bool> includeUsage;
  std::optional<double> temperature;
  /// Sent as "Authorization: Bearer KEY".
  std::optional<std::string> apiKey;
  /// Seconds that an answer may take in all.
  double timeout = 600;
  /// Requests under way at a time; others wait, and their times with them.
  size_t connections = 65536;
  /// Told of what the server does not take.
  LogCallback log;
};

/// Of the failure of a request that was cancelled.
inline constexpr char cancelledKind[] = "cancelled";

/// Gets a request with its answer's times.
using AnswerCallback = std::function<void(ServedRequest answer)>;

class TargetServer {
public:
  using Clock = EventLoop::Clock;

  /// Asks the server, on `loop`, which has nothing else to do meanwhile, which
  /// models it has, sends it a short request, leaving out what it refuses
  /// unless the options ask for it, and measures `WordCosts` where prompts are
  /// words. `stop` is asked now and then. Errors: nobody answers; the server
  /// refuses the request, and how.
  static Result<std::unique_ptr<TargetServer>>
  connect(EventLoop &loop, TargetOptions options,
          const std::function<bool()> &stop = {});

  /// Sends a request with a prompt of its own and calls `onEnd` on the loop
  /// when nothing more comes of its answer. Times are seconds after `origin`;
  /// the arrival is when it was sent. A server that counts no tokens has sent
  /// one in each piece, and got those asked for. Whatever it does, it is told
  /// in the answer: 429 is a refusal, all else that is no complete stream a
  /// failure.
  HttpCallId send(const ServingRequest &request, Clock::time_point origin,
                  AnswerCallback onEnd);
  /// Ends a request; its answer is told as a failure.
  void cancel(HttpCallId id) { client->cancel(id); }

  EventLoop &loop() { return *eventLoop; }
  const std::string &model() const { return options.model; }
  bool ignoresEndOfText() const { return *options.ignoreEndOfText; }
  bool includesUsage() const { return *options.includeUsage; }
  /// Tokens of a prompt and its answer together, if the server tells.
  std::optional<uint64_t> contextTokens() const { return context; }

private:
  TargetServer(EventLoop &loop, TargetOptions options, PromptMaker prompts,
               std::function<bool()> stop);

  std::string path(const char *name) const;
  HttpRequest makeRequest(const std::string &path, std::string body) const;
  std::string makeBody(const std::string &prompt, uint64_t outputTokens,
                       bool streams) const;
  std::string makePrompt(uint64_t tokens);

  Result<HttpAnswer> ask(HttpClient &asked, HttpRequest request) const;
  Status findModel();
  Status negotiate();
  /// Leaves out what `failure` says that the server does not take; false: it
  /// says nothing of that kind.
  bool leaveOut(const ServingFailure &failure);
  Status measureWords();
  /// Tokens of a prompt of `words` words; nothing: the server does not tell.
  std::optional<uint64_t> countTokens(uint64_t words);

  EventLoop *eventLoop;
  /// Asked while the server is found out about.
  std::function<bool()> stop;
  TargetOptions options;
  PromptMaker prompts;
  /// So that no prompt comes twice.
  uint64_t prompted = 0;
  std::optional<uint64_t> context;
  std::unique_ptr<HttpClient> client;
};

} // namespace sandwich

#endif // SANDWICH_LOADTEST_TARGETSERVER_H
