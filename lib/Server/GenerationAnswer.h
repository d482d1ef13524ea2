//===- GenerationAnswer.h - Texts on their way to a client ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_GENERATIONANSWER_H
#define SANDWICH_LIB_SERVER_GENERATIONANSWER_H

#include "AnswerShape.h"
#include "ModelMetrics.h"

#include "Responses.h"
#include "sandwich/Api/ApiError.h"
#include "sandwich/Http/HttpServer.h"

#include "sandwich/Server/RequestLog.h"
#include "sandwich/Service/Service.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace sandwich {

/// What becomes of a text's calls of tools.
struct ToolCallOptions {
  /// Nothing: what the model writes is text.
  std::optional<ToolCallSyntax> syntax = {};
  /// The names that calls may have.
  std::set<std::string> tools = {};
  /// Of a text.
  uint32_t mostCalls = UINT32_MAX;
};

/// The answer to a request for texts: some prompts, each with some
/// continuations. It submits them to the service and sends what comes, in
/// pieces or as a whole; a client that leaves takes its texts with it.
class GenerationAnswer : public std::enable_shared_from_this<GenerationAnswer> {
public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    bool streams = false;
    bool includesUsage = false;
    bool continuousUsage = false;
    ToolCallOptions toolCalls = {};
    /// Of each prompt.
    uint32_t continuations = 1;
    /// When the request had been received.
    Clock::time_point receivedAt = {};
  };

  /// A prompt's tokens to be continued, and what of the prompt is told.
  struct Prompt {
    GenerationRequest request;
    /// The text that the answer begins with. Its tokens' log-probabilities are
    /// told where those of all are, and the request asks for them.
    std::string echo = {};
  };

  /// Runs work on another thread, later.
  using Executor = std::function<void(std::function<void()> work)>;

  /// `onOver` is told once, when nothing of the answer remains; `record` has
  /// what is known before. What takes long is for `executor`: the service's
  /// thread has steps to run.
  GenerationAnswer(std::shared_ptr<HttpExchange> exchange,
                   std::unique_ptr<AnswerShape> shape, Options options,
                   Service &service, ModelMetrics &metrics,
                   RequestRecord record,
                   std::function<void(RequestRecord)> onOver,
                   Executor executor);

  /// Submits all prompts, or none and answers with the error of the first that
  /// is refused.
  void start(std::vector<Prompt> prompts);

private:
  struct Choice {
    ChoicePart part;
    std::optional<ToolCallParser> calls = {};
    /// Where tokens are told with their log-probabilities.
    std::optional<TokenPlaces> places = {};
    uint64_t tokens = 0;
    std::optional<Clock::time_point> lastToken = {};
    bool isOpen = false;
  };

  /// What the texts of a prompt begin with.
  struct Echo {
    std::string text = {};
    std::vector<TokenScore> scores = {};
    std::optional<TokenPlaces> places = {};
    bool isTold = false;
  };

  GenerationCallbacks callbacksOf(size_t prompt, bool scoresPrompt);
  void onPromptToken(size_t prompt, const ScoredToken &token);
  /// What callbacks do must not throw: the answer ends with an error then.
  void guard(const std::function<void()> &work);
  void onToken(size_t prompt, const GeneratedToken &token);
  void onEnd(size_t prompt, const RequestEnd &end);
  void onLeft();

  // With the mutex held.
  /// The places of the tokens of a prompt that is told.
  std::optional<TokenPlaces> placesIn(const Prompt &prompt) const;
  /// Tells what the texts of `prompt` begin with, once.
  void tellEcho(size_t prompt);
  void add(Choice &choice, ChoicePart part);
  void measure(Choice &choice, Clock::time_point now);
  void send(Choice &choice, const ChoicePart &part);
  void fail(const ApiError &error);
  void cancelAll();
  /// Sends the end, or the whole of what does not stream.
  void complete();
  /// Sends an answer that is complete.
  void respond(const std::vector<ChoicePart> &parts, const TokenUsage &usage);
  /// The last that happens, if all prompts have ended.
  void concludeIfOver();

  const std::shared_ptr<HttpExchange> exchange;
  const std::unique_ptr<AnswerShape> shape;
  const Options options;
  Service &service;
  ModelMetrics &metrics;
  const Executor executor;

  std::mutex mutex;
  RequestRecord record;
  std::function<void(RequestRecord)> onOver;
  std::vector<Choice> choices;
  /// Of each prompt.
  std::vector<Echo> echoes;
  std::vector<RequestId> requests;
  TokenUsage usage;
  std::optional<double> firstTokenSeconds;
  /// Time between tokens, and how many.
  double betweenSeconds = 0;
  uint64_t betweenTokens = 0;
  /// Prompts that have not ended.
  size_t live = 0;
  /// Nothing more is sent.
  bool over = false;
  bool concluded = false;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_GENERATIONANSWER_H
