//===- EncodingAnswer.cpp - The texts of a request ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncodingAnswer.h"

#include "LoadedEncoder.h"
#include "Responses.h"

#include <algorithm>
#include <cmath>
#include <new>

using namespace sandwich;

EncodingAnswer::EncodingAnswer(const Call &call, const EndpointContext &context,
                               const LoadedEncoder &model, Finish finish,
                               Refuse refuse)
    : exchange(call.exchange), id(call.id), path(call.request.path),
      receivedAt(call.receivedAt), onOver(context.onOver),
      executor(context.executor), model(model), finish(std::move(finish)),
      refuse(refuse) {}

unsigned sandwich::retryAfterSeconds(const EncodingCounts &counts) {
  constexpr double longest = 60;
  if (counts.seconds <= 0)
    return 1;
  const double perToken =
      counts.seconds /
      static_cast<double>(std::max<uint64_t>(counts.tokens, 1));
  return static_cast<unsigned>(std::clamp(
      std::ceil(static_cast<double>(counts.waitingTokens) * perToken), 1.0,
      longest));
}

void EncodingAnswer::start(std::vector<EncodingRequest> texts) {
  rows.resize(texts.size());
  missing = texts.size();
  exchange->onClosed([answer = weak_from_this()] {
    if (const auto self = answer.lock())
      self->cancel();
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    tokens += texts[i].ids.size();
    texts[i].cancelled = cancelled;
    texts[i].completion = [self = shared_from_this(),
                           i](Result<std::vector<float>> result) {
      self->take(i, std::move(result));
    };
  }
  // Devices take plain texts.
  const bool isDispatched =
      model.devices && std::ranges::all_of(texts, [](const auto &text) {
        return text.output == EncoderOutput::Texts &&
               std::ranges::all_of(text.types,
                                   [](int32_t type) { return type == 0; });
      });
  if (isDispatched)
    return dispatch(std::move(texts));
  if (Status taken = model.service->submit(std::move(texts)); !taken) {
    const ApiError error =
        ApiError::of(taken.error(), retryAfterSeconds(model.service->counts()));
    respond(refuse(error), error.message);
  }
}

/// By whichever device has room. Where one text finds none, the others are of
/// no use to the client either, but are computed: they may be under way.
void EncodingAnswer::dispatch(std::vector<EncodingRequest> texts) {
  Dispatcher &dispatcher = model.devices->dispatcher();
  auto self = shared_from_this();
  for (size_t i = 0; i < texts.size(); ++i) {
    QueryTicket ticket = dispatcher.submit(
        {.id = i, .tokens = std::move(texts[i].ids)},
        [self, i](QueryOutcome outcome) {
          if (!outcome.refusal)
            return self->take(i, std::move(outcome.embedding));
          if (outcome.refusal->retryAfterSeconds)
            self->retryAfter = static_cast<unsigned>(std::clamp(
                std::ceil(*outcome.refusal->retryAfterSeconds), 1.0, 3600.0));
          self->take(
              i, makeError(outcome.refusal->kind, outcome.refusal->message));
        });
    std::lock_guard lock(ticketMutex);
    tickets.push_back(std::move(ticket));
  }
  // The client may have left before all were there.
  if (*cancelled)
    cancel();
}

void EncodingAnswer::cancel() {
  *cancelled = true;
  std::vector<QueryTicket> all;
  {
    std::lock_guard lock(ticketMutex);
    all.swap(tickets);
  }
  for (const QueryTicket &ticket : all)
    (void)model.devices->dispatcher().cancel(ticket);
}

void EncodingAnswer::take(size_t text, Result<std::vector<float>> result) {
  if (result)
    rows[text] = *std::move(result);
  else if (!hasFailed.exchange(true))
    failure = result.error();
  if (--missing > 0)
    return;
  // Off the model's thread.
  executor([self = shared_from_this()] { self->end(); });
}

void EncodingAnswer::end() {
  const auto make = [&]() -> Result<std::string> {
    try {
      return failure ? Result<std::string>(*failure) : finish(rows);
    } catch (const std::bad_alloc &) {
      return makeError(ErrorKind::Internal,
                       "there is no memory for the answer");
    }
  };
  Result<std::string> body = make();
  if (body)
    return respond({.body = *std::move(body)}, "");
  const unsigned later = retryAfter;
  const ApiError error = ApiError::of(
      body.error(),
      later > 0 ? later : retryAfterSeconds(model.service->counts()));
  respond(refuse(error), error.message);
}

void EncodingAnswer::respond(const HttpResponse &response,
                             const std::string &error) {
  const bool sent = exchange->respond(response);
  if (!onOver)
    return;
  RequestRecord record;
  record.id = id;
  record.path = path;
  record.model = model.name;
  record.status = sent ? response.status : RequestRecord::clientLeft;
  record.error = sent ? error : "the client left";
  record.promptTokens = tokens;
  record.seconds =
      std::chrono::duration<double>(GenerationAnswer::Clock::now() - receivedAt)
          .count();
  onOver(std::move(record));
}
