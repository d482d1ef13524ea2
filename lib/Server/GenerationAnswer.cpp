//===- GenerationAnswer.cpp - Texts on their way to a client --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationAnswer.h"

#include "sandwich/Support/Process.h"

#include <exception>
#include <utility>

using namespace sandwich;

static double secondsBetween(GenerationAnswer::Clock::time_point from,
                             GenerationAnswer::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

GenerationAnswer::GenerationAnswer(std::shared_ptr<HttpExchange> exchange,
                                   std::unique_ptr<AnswerShape> shape,
                                   Options options, Service &service,
                                   ModelMetrics &metrics, RequestRecord record,
                                   std::function<void(RequestRecord)> onOver,
                                   Executor executor)
    : exchange(std::move(exchange)), shape(std::move(shape)),
      options(std::move(options)), service(service), metrics(metrics),
      executor(std::move(executor)), record(std::move(record)),
      onOver(std::move(onOver)) {}

//===----------------------------------------------------------------------===//
// Beginning
//===----------------------------------------------------------------------===//

GenerationCallbacks GenerationAnswer::callbacksOf(size_t prompt,
                                                  bool scoresPrompt) {
  const auto self = shared_from_this();
  GenerationCallbacks callbacks;
  callbacks.onToken = [self, prompt](const GeneratedToken &token) {
    self->guard([&] { self->onToken(prompt, token); });
  };
  if (scoresPrompt)
    callbacks.onPromptToken = [self, prompt](const ScoredToken &token) {
      self->guard([&] { self->onPromptToken(prompt, token); });
    };
  callbacks.onEnd = [self, prompt](const RequestEnd &end) {
    self->guard([&] { self->onEnd(prompt, end); });
  };
  return callbacks;
}

std::optional<TokenPlaces>
GenerationAnswer::placesIn(const Prompt &prompt) const {
  const std::optional<Tokenizer> &tokenizer = service.tokenizer();
  // Special tokens are in texts that were tokens, and not in others.
  const bool hasSpecial =
      tokenizer &&
      tokenizer->decode(prompt.request.prompt,
                        /*skipSpecialTokens=*/false) == prompt.echo;
  return TokenPlaces(tokenizer, !hasSpecial, {}, 0);
}

void GenerationAnswer::guard(const std::function<void()> &work) {
  runCatching("make an answer", work, [this](const char *reason) {
    std::lock_guard lock(mutex);
    const bool wasOver = std::exchange(over, true);
    if (!wasOver)
      record.status = 500;
    try {
      const ApiError error = ApiError::ofStatus(500, reason);
      if (!wasOver)
        fail(error);
      else // It was complete, and could not be sent.
        (void)exchange->respond(toResponse(error));
    } catch (const std::exception &) {
      // Not even for that; the connection ends with the answer.
      cancelAll();
    }
    concludeIfOver();
  });
}

void GenerationAnswer::start(std::vector<Prompt> prompts) {
  // The first tokens may come before their requests' names are known here.
  std::unique_lock lock(mutex);
  for (size_t i = 0; i < prompts.size(); ++i)
    for (uint32_t text = 0; text < options.continuations; ++text) {
      Choice choice;
      choice.part.index =
          static_cast<uint32_t>(i * options.continuations + text);
      if (const ToolCallOptions &calls = options.toolCalls; calls.syntax)
        choice.calls.emplace(*calls.syntax,
                             "call_" + record.id + "_" +
                                 std::to_string(choice.part.index) + "_",
                             calls.tools, calls.mostCalls);
      if (shape->of().scored)
        choice.places.emplace(
            service.tokenizer(), prompts[i].request.skipSpecialTokens,
            prompts[i].request.prompt, countCharacters(prompts[i].echo));
      choices.push_back(std::move(choice));
    }
  for (Prompt &each : prompts) {
    Echo echo;
    if (shape->of().scored && each.request.promptLogProbabilities) {
      echo.places = placesIn(each);
      const int32_t first = each.request.prompt.front();
      echo.scores.push_back(
          {.token = first, .textOffset = echo.places->placeOf(first)});
    }
    echo.text = std::move(each.echo);
    echoes.push_back(std::move(echo));
  }
  std::vector<Submission> submissions;
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerationRequest &request = prompts[i].request;
    usage.promptTokens += request.prompt.size();
    const bool scoresPrompt = request.promptLogProbabilities.has_value();
    submissions.push_back({std::move(request), callbacksOf(i, scoresPrompt)});
  }
  Result<std::vector<RequestId>> ids = service.submit(std::move(submissions));
  if (!ids) {
    fail(ApiError::of(ids.error(),
                      metrics.retryAfterSeconds(usage.promptTokens)));
    concludeIfOver();
    return;
  }
  requests = *std::move(ids);
  live = requests.size();
  try {
    if (options.streams)
      exchange->begin({.contentType = "text/event-stream",
                       .headers = {{"Cache-Control", "no-cache"},
                                   {"X-Accel-Buffering", "no"}}},
                      ": still here\n\n");
    lock.unlock();
    // May call at once.
    exchange->onClosed([weak = weak_from_this()] {
      if (auto self = weak.lock())
        self->onLeft();
    });
  } catch (...) {
    cancelAll();
    throw;
  }
}

//===----------------------------------------------------------------------===//
// What the service tells
//===----------------------------------------------------------------------===//

static std::string nameOf(FinishReason reason) {
  switch (reason) {
  case FinishReason::EndOfText:
  case FinishReason::Stopped:
    return "stop";
  case FinishReason::MaxTokens:
  case FinishReason::ContextFull:
    return "length";
  }
  return "stop";
}

void GenerationAnswer::measure(Choice &choice, Clock::time_point now) {
  if (!choice.lastToken) {
    const double seconds = secondsBetween(options.receivedAt, now);
    if (!firstTokenSeconds)
      firstTokenSeconds = seconds;
    metrics.observeFirstToken(seconds);
  } else {
    const double seconds = secondsBetween(*choice.lastToken, now);
    betweenSeconds += seconds;
    ++betweenTokens;
    metrics.observeNextToken(seconds);
  }
  choice.lastToken = now;
}

void GenerationAnswer::onPromptToken(size_t prompt, const ScoredToken &token) {
  std::lock_guard lock(mutex);
  Echo &echo = echoes[prompt];
  if (!echo.places)
    return;
  echo.scores.push_back(
      {.token = token.token.token,
       .logProbability = token.token.logProbability,
       .top = token.token.top,
       .textOffset = echo.places->placeOf(token.token.token)});
}

void GenerationAnswer::tellEcho(size_t prompt) {
  Echo &echo = echoes[prompt];
  if (std::exchange(echo.isTold, true) ||
      (echo.text.empty() && echo.scores.empty()))
    return;
  for (uint32_t text = 0; text < options.continuations; ++text) {
    ChoicePart part;
    part.text = echo.text;
    part.scores = echo.scores;
    add(choices[prompt * options.continuations + text], std::move(part));
  }
  echo = {.isTold = true};
}

void GenerationAnswer::onToken(size_t prompt, const GeneratedToken &token) {
  std::lock_guard lock(mutex);
  Choice &choice = choices[prompt * options.continuations + token.text];
  measure(choice, Clock::now());
  ++choice.tokens;
  ++usage.generatedTokens;
  if (over)
    return;
  tellEcho(prompt);
  ChoicePart part;
  part.text = token.piece;
  if (choice.places)
    part.scores.push_back(
        {.token = token.token.token,
         .logProbability = token.token.logProbability,
         .top = token.token.top,
         .textOffset = choice.places->placeOf(token.token.token)});
  if (token.finish)
    part.finish = nameOf(*token.finish);
  add(choice, std::move(part));
}

void GenerationAnswer::add(Choice &choice, ChoicePart part) {
  part.index = choice.part.index;
  if (choice.calls) {
    ToolCallParser::Step step = choice.calls->add(part.text);
    if (part.finish) {
      ToolCallParser::Step rest = choice.calls->finish();
      step.text += rest.text;
      std::ranges::move(rest.calls, std::back_inserter(step.calls));
      if (choice.calls->hasCalls() && *part.finish == "stop")
        part.finish = "tool_calls";
    }
    part.text = std::move(step.text);
    part.calls = std::move(step.calls);
  }
  if (part.finish)
    record.finish = *part.finish;
  if (options.streams)
    return send(choice, part);
  ChoicePart &whole = choice.part;
  whole.text += part.text;
  std::ranges::move(part.scores, std::back_inserter(whole.scores));
  std::ranges::move(part.calls, std::back_inserter(whole.calls));
  whole.finish = part.finish;
}

void GenerationAnswer::send(Choice &choice, const ChoicePart &part) {
  const bool isEmpty = part.text.empty() && part.scores.empty() &&
                       part.calls.empty() && !part.finish;
  if (isEmpty)
    return;
  if (!std::exchange(choice.isOpen, true))
    exchange->write(shape->opening(part.index));
  choice.part.finish = part.finish;
  std::optional<TokenUsage> soFar;
  if (options.continuousUsage)
    soFar = usage;
  exchange->write(shape->chunk(part, soFar));
}

void GenerationAnswer::onEnd(size_t prompt, const RequestEnd &end) {
  std::lock_guard lock(mutex);
  --live;
  usage.cachedTokens += end.cachedTokens;
  record.preemptions += end.preemptions;
  record.queueSeconds =
      std::max(record.queueSeconds.value_or(0), end.queueSeconds);
  metrics.observeEnd(end);
  if (!over && !end.status)
    fail(ApiError::of(end.status.error(),
                      metrics.retryAfterSeconds(usage.promptTokens)));
  if (!over) {
    tellEcho(prompt);
    // A prompt that was only to be scored has no last token.
    for (uint32_t text = 0; text < options.continuations; ++text) {
      Choice &choice = choices[prompt * options.continuations + text];
      if (!choice.part.finish) {
        ChoicePart part;
        part.finish = "length";
        add(choice, std::move(part));
      }
    }
  }
  const bool isComplete = !over && live == 0;
  over |= isComplete;
  // It is counted and logged by when its client can know of it; where that
  // fails, the client has its answer all the same.
  try {
    concludeIfOver();
  } catch (...) {
    if (isComplete)
      complete();
    throw;
  }
  if (isComplete)
    complete();
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void GenerationAnswer::complete() {
  if (options.streams) {
    if (options.includesUsage)
      exchange->write(shape->usageChunk(usage));
    exchange->write("data: [DONE]\n\n");
    exchange->finish();
    return;
  }
  std::vector<ChoicePart> parts;
  for (Choice &choice : choices)
    parts.push_back(std::move(choice.part));
  // Texts take no time, the log-probabilities of all their tokens do.
  if (!shape->of().scored)
    return respond(parts, usage);
  executor(
      [self = shared_from_this(), parts = std::move(parts), usage = usage] {
        self->guard([&] { self->respond(parts, usage); });
      });
}

void GenerationAnswer::respond(const std::vector<ChoicePart> &parts,
                               const TokenUsage &usage) {
  const Json whole = shape->whole(parts, usage);
  (void)exchange->respond(
      {.body = whole.dump(-1, ' ', false, Json::error_handler_t::replace)});
}

void GenerationAnswer::cancelAll() {
  for (RequestId id : requests)
    (void)service.cancel(id);
}

void GenerationAnswer::fail(const ApiError &error) {
  over = true;
  record.status = error.status;
  record.error = error.message;
  // What has begun can only be broken off, with an event that says why.
  if (!exchange->respond(toResponse(error)) && options.streams) {
    exchange->write(
        "event: error\ndata: " +
        error.toJson().dump(-1, ' ', false, Json::error_handler_t::replace) +
        "\n\n");
    exchange->finish();
  }
  cancelAll();
}

void GenerationAnswer::onLeft() {
  std::lock_guard lock(mutex);
  if (!over) {
    over = true;
    record.status = RequestRecord::clientLeft;
    record.error = "the client left";
  }
  cancelAll();
}

void GenerationAnswer::concludeIfOver() {
  if (!over || live > 0 || std::exchange(concluded, true))
    return;
  record.promptTokens = usage.promptTokens;
  record.cachedTokens = usage.cachedTokens;
  record.generatedTokens = usage.generatedTokens;
  record.ttft = firstTokenSeconds;
  if (betweenTokens > 0)
    record.tpot = betweenSeconds / static_cast<double>(betweenTokens);
  record.seconds = secondsBetween(options.receivedAt, Clock::now());
  metrics.observeAnswer(record);
  if (onOver)
    onOver(record);
}
