//===- EncodingAnswer.h - The texts of a request ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_ENCODINGANSWER_H
#define SANDWICH_LIB_SERVER_ENCODINGANSWER_H

#include "Endpoints.h"

#include "sandwich/Devices/Dispatcher.h"
#include "sandwich/Encoding/EncodingService.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// The answer to a request of some texts: each is computed whenever there is
/// room in a batch, and once all are, `finish` makes the answer of their rows,
/// on a worker. The first error becomes the answer instead. A client that
/// leaves takes what has not begun with it.
class EncodingAnswer : public std::enable_shared_from_this<EncodingAnswer> {
public:
  /// The response, given the rows of each text.
  using Finish =
      std::function<Result<std::string>(std::vector<std::vector<float>> &rows)>;
  /// How an error is told.
  using Refuse = HttpResponse (*)(const ApiError &error);

  EncodingAnswer(const Call &call, const EndpointContext &context,
                 const LoadedEncoder &model, Finish finish, Refuse refuse);

  /// To be called once, with one text at least.
  void start(std::vector<EncodingRequest> texts);

private:
  void dispatch(std::vector<EncodingRequest> texts);
  void take(size_t text, Result<std::vector<float>> result);
  void end();
  void respond(const HttpResponse &response, const std::string &error);

  void cancel();

  const std::shared_ptr<HttpExchange> exchange;
  const std::string id, path;
  const GenerationAnswer::Clock::time_point receivedAt;
  /// Copies, as a model that ends after them may still have texts.
  const std::function<void(RequestRecord)> onOver;
  const GenerationAnswer::Executor executor;
  const LoadedEncoder &model;
  const Finish finish;
  const Refuse refuse;
  uint64_t tokens = 0;
  std::vector<std::vector<float>> rows;
  std::atomic<size_t> missing = 0;
  std::shared_ptr<std::atomic<bool>> cancelled =
      std::make_shared<std::atomic<bool>>(false);
  std::mutex ticketMutex;
  /// Of texts that devices have.
  std::vector<QueryTicket> tickets;
  std::atomic<bool> hasFailed = false;
  /// As a device tells; 0: none did.
  std::atomic<unsigned> retryAfter = 0;
  /// Written by the one that fails first, read once nothing is missing.
  std::optional<Error> failure = {};
};

/// Seconds after which what waits now will have been computed.
unsigned retryAfterSeconds(const EncodingCounts &counts);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_ENCODINGANSWER_H
