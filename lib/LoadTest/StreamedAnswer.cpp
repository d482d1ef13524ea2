//===- StreamedAnswer.cpp - An answer as it comes -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamedAnswer.h"

#include "sandwich/LoadTest/StreamChunk.h"
#include "sandwich/LoadTest/TargetServer.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Utf8.h"

#include <algorithm>

using namespace sandwich;

/// Of an answer that tells of an error.
static constexpr size_t mostErrorBytes = 8 << 10;
/// Of a message, before it is cut.
static constexpr size_t mostMessageBytes = 300;

/// In one line, with the end cut off where it is long.
static std::string asLine(std::string text) {
  if (findInvalidUtf8(text))
    return "an answer that is no UTF-8";
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  if (text.size() <= mostMessageBytes)
    return text;
  size_t end = mostMessageBytes;
  // At the beginning of a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}

/// The message in an object of one of the shapes that servers use.
static std::optional<std::string> findMessage(const Json &object) {
  if (!object.is_object())
    return std::nullopt;
  for (const char *name : {"error", "message", "detail"}) {
    const auto member = object.find(name);
    if (member == object.end())
      continue;
    if (member->is_string())
      return member->get<std::string>();
    if (member->is_object())
      if (const auto message = member->find("message");
          message != member->end() && message->is_string())
        return message->get<std::string>();
  }
  return std::nullopt;
}

std::string sandwich::describeErrorBody(std::string_view body) {
  if (const Result<Json> object = parseJson(body))
    if (const std::optional<std::string> message = findMessage(*object))
      return asLine(*message);
  return body.empty() ? "no reason is given" : asLine(std::string(body));
}

void StreamedAnswer::fail(std::string kind, std::string message) {
  if (!request.failure)
    request.failure = {std::move(kind), std::move(message)};
}

void StreamedAnswer::readHead(const HttpResponseHead &head) {
  status = head.status;
  contentType = head.header("content-type").value_or("");
  isStream = status == 200 && contentType.starts_with("text/event-stream");
}

bool StreamedAnswer::readBody(std::string_view piece) {
  if (!isStream) {
    body += piece.substr(0, mostErrorBytes - body.size());
    return body.size() < mostErrorBytes;
  }
  arrived = now();
  const Status read = events.read(
      piece, [this](const ServerSentEvent &event) { readEvent(event); });
  if (!read)
    fail("invalid stream", read.error().message);
  return !request.failure;
}

void StreamedAnswer::addPiece() {
  if (pieces == mostPieces) {
    fail("endless stream", "it goes on behind the tokens that were asked for");
    return;
  }
  if (pieces++ == 0)
    request.firstToken = arrived;
  else
    request.gaps.push_back(arrived - request.lastToken);
  request.lastToken = arrived;
}

void StreamedAnswer::readEvent(const ServerSentEvent &event) {
  // What follows the end is not looked at.
  if (done || request.failure)
    return;
  if (event.data == "[DONE]") {
    done = true;
    request.ended = arrived;
    return;
  }
  const Result<StreamChunk> chunk = parseStreamChunk(event.data);
  if (!chunk) {
    fail("invalid stream", chunk.error().message);
    return;
  }
  if (chunk->error || event.type == "error") {
    fail("error in a stream",
         chunk->error ? asLine(*chunk->error) : describeErrorBody(event.data));
    return;
  }
  if (chunk->hasText)
    addPiece();
  if (chunk->finishes && !std::exchange(finished, true) && pieces == 0)
    // Nothing of it can be seen, such as a token that ends the text.
    request.firstToken = request.lastToken = arrived;
  if (chunk->promptTokens)
    request.promptTokens = *chunk->promptTokens;
  if (chunk->cachedPromptTokens)
    request.cachedPromptTokens = *chunk->cachedPromptTokens;
  if (chunk->outputTokens) {
    countedTokens = *chunk->outputTokens;
    counted = true;
  }
}

void StreamedAnswer::finishError() {
  if (status == 429) {
    request.refused = true;
    return;
  }
  if (status != 200)
    fail("HTTP " + std::to_string(status), describeErrorBody(body));
  else
    fail("no stream", "the answer is of type '" + asLine(contentType) + "'");
}

static const char *kindOf(HttpFailureKind kind, bool begun) {
  switch (kind) {
  case HttpFailureKind::NotConnected:
    return "no connection";
  case HttpFailureKind::TimedOut:
    return "time-out";
  case HttpFailureKind::Broken:
    return begun ? "broken stream" : "broken connection";
  case HttpFailureKind::Protocol:
    return "invalid HTTP";
  case HttpFailureKind::TooLarge:
    return "too large an answer";
  case HttpFailureKind::Cancelled:
    break;
  }
  return cancelledKind;
}

ServedRequest StreamedAnswer::finish(const HttpFailure *failure) {
  if (!done)
    request.ended = now();
  // A status that is an error says enough, whatever became of its body.
  if (status != 0 && !isStream &&
      (status != 200 || !failure || body.size() == mostErrorBytes))
    finishError();
  else if (!done && failure)
    fail(kindOf(failure->kind, isStream), failure->message);
  else if (!done && !finished)
    fail("broken stream", "the stream ended without [DONE]");
  request.outputTokens = counted ? countedTokens : pieces;
  return std::move(request);
}
