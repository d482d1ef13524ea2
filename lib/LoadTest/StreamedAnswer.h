//===- StreamedAnswer.h - An answer as it comes -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_LOADTEST_STREAMEDANSWER_H
#define SANDWICH_LIB_LOADTEST_STREAMEDANSWER_H

#include "sandwich/Http/HttpClient.h"
#include "sandwich/Http/ServerSentEvents.h"
#include "sandwich/Runtime/Measurement/ServedRequest.h"

#include <string>
#include <string_view>

namespace sandwich {

/// What a server says of an error, in a line of at most some hundred bytes:
/// the message of an object of OpenAI's or FastAPI's shape, else the text.
std::string describeErrorBody(std::string_view body);

/// Reads a streamed answer of OpenAI's shape and times its pieces.
class StreamedAnswer {
public:
  using Clock = EventLoop::Clock;

  /// Times are seconds after `origin`. `asked` has the tokens that were asked
  /// for.
  StreamedAnswer(Clock::time_point origin, const ServedRequest &asked)
      : origin(origin), request(asked),
        mostPieces(2 * asked.outputTokens + 64) {}

  void readHead(const HttpResponseHead &head);
  /// False: the rest need not come.
  bool readBody(std::string_view piece);
  /// The request with all that is known; `failure` as `HttpCallbacks::onEnd`
  /// has it.
  ServedRequest finish(const HttpFailure *failure);

private:
  double now() const {
    return std::chrono::duration<double>(Clock::now() - origin).count();
  }
  void readEvent(const ServerSentEvent &event);
  void addPiece();
  void fail(std::string kind, std::string message);
  /// Of an answer whose status is no success.
  void finishError();

  const Clock::time_point origin;
  ServedRequest request;
  /// Each is remembered. No server sends more than a piece for each token.
  const uint64_t mostPieces;
  unsigned status = 0;
  bool isStream = false;
  std::string contentType;
  ServerSentEvents events;
  /// Of an answer that is no stream, its beginning.
  std::string body;
  /// When the bytes came that are read now.
  double arrived = 0;
  uint64_t pieces = 0;
  uint64_t countedTokens = 0;
  bool counted = false;
  /// One of the choices has ended, and the stream said that it has.
  bool finished = false;
  bool done = false;
};

} // namespace sandwich

#endif // SANDWICH_LIB_LOADTEST_STREAMEDANSWER_H
