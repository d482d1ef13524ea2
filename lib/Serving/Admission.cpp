//===- Admission.cpp - Which requests the scheduler takes -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/Scheduler.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sandwich;

static bool isPositive(double value) {
  return std::isfinite(value) && value > 0;
}

static Status checkOptions(const SchedulerOptions &options) {
  for (const SchedulerLimits::Phase &phase :
       {options.limits.prefill, options.limits.decode})
    if (std::min({phase.tokens, phase.sequences, phase.logitRows}) == 0)
      return makeError(ErrorKind::InvalidArgument,
                       "a step needs at least one token, one sequence and one "
                       "row of logits");
  const uint64_t context = options.limits.contextLength;
  if (context == 0)
    return makeError(ErrorKind::InvalidArgument,
                     "the context needs at least one token");
  if (options.maxWaitingRequests == 0 || options.maxWaitingTokens < context)
    return makeError(ErrorKind::InvalidArgument, "a queue of ",
                     options.maxWaitingRequests, " requests and ",
                     options.maxWaitingTokens,
                     " tokens could never take a prompt of the ", context,
                     " tokens of the context");
  if (!isPositive(options.firstTokenObjective.value_or(1)) ||
      !isPositive(options.tokenObjective.value_or(1)) ||
      !isPositive(options.slowdown - 1))
    return makeError(ErrorKind::InvalidArgument,
                     "objectives must be positive, and the slowdown above 1");
  if (options.agingSteps > std::numeric_limits<uint32_t>::max())
    return makeError(ErrorKind::InvalidArgument, "a level of priority of ",
                     options.agingSteps, " steps lets others wait forever");
  return {};
}

Result<std::unique_ptr<Scheduler>>
Scheduler::create(BlockPool &pool, const SchedulerOptions &options,
                  StepCostModel costs) {
  SANDWICH_RETURN_IF_ERROR(checkOptions(options));
  return std::unique_ptr<Scheduler>(
      new Scheduler(pool, options, std::move(costs)));
}

uint64_t Scheduler::maxTexts() const {
  const SchedulerLimits::Phase &decode = options.limits.decode;
  return std::min({decode.tokens, decode.sequences, decode.logitRows});
}

uint64_t Scheduler::longestText(const Request &request) const {
  // The last token of a text is not computed.
  const uint64_t more = options.limits.contextLength - request.prompt.size();
  return request.prompt.size() + std::min(request.maxTokens - 1, more);
}

uint64_t Scheduler::mostBlocks(const Request &request) const {
  const uint64_t each = BlockPool::blocksFor(longestText(request));
  const uint64_t shared =
      request.continuations == 1
          ? 0
          : request.prompt.size() / SANDWICH_KV_BLOCK_TOKENS;
  return shared + request.continuations * (each - shared);
}

uint64_t Scheduler::mostSteps(const Request &request) const {
  const uint64_t prompt = request.prompt.size();
  const uint64_t texts = request.continuations;
  const uint64_t more = longestText(request) - prompt;
  // Others may be one token each of a step with prompts.
  const uint64_t tokens = options.limits.prefill.tokens;
  const uint64_t piece =
      std::min(leastPiece, tokens > maxTexts() ? tokens - maxTexts() : 1);
  // Each text may be computed a second time, in pieces of which the last is
  // shorter, and every second step may be one that is not for what it lacks.
  return 2 * (divideUp(prompt + texts * more, piece) + texts + more + 1);
}

int64_t Scheduler::rankOf(const Request &request) const {
  return static_cast<int64_t>(steps) -
         static_cast<int64_t>(request.priority * options.agingSteps);
}

Status Scheduler::checkRequest(const Request &request) const {
  const uint64_t prompt = request.prompt.size();
  if (prompt == 0)
    return makeError(ErrorKind::InvalidArgument, "the prompt has no tokens");
  if (request.maxTokens == 0)
    return makeError(ErrorKind::InvalidArgument,
                     "a text cannot get at most 0 tokens");
  if (request.continuations == 0 || request.continuations > maxTexts())
    return makeError(ErrorKind::InvalidArgument, request.continuations,
                     " texts are asked for, and 1 to ", maxTexts(),
                     " can be generated together");
  if (request.priority > maxPriority)
    return makeError(ErrorKind::InvalidArgument, "priority ", request.priority,
                     " is above the highest, ", maxPriority);
  if (prompt > options.limits.contextLength)
    return makeError(ErrorKind::ContextExceeded, "the prompt has ", prompt,
                     " tokens, and the context ", options.limits.contextLength);
  if (mostBlocks(request) > pool.blockCount())
    return makeError(ErrorKind::CacheFull, "the request may need ",
                     mostBlocks(request), " blocks of the KV cache, which has ",
                     pool.blockCount(), "; ask for fewer tokens");
  return {};
}

Status Scheduler::checkQueue(const Request &request) const {
  const SchedulerStatistics now = statistics();
  if (now.waitingRequests >= options.maxWaitingRequests)
    return makeError(ErrorKind::Overloaded, now.waitingRequests,
                     " requests are waiting, and no more may; try again later");
  if (now.waitingTokens + request.prompt.size() > options.maxWaitingTokens)
    return makeError(ErrorKind::Overloaded, "prompts of ", now.waitingTokens,
                     " tokens are waiting, and at most ",
                     options.maxWaitingTokens, " may; try again later");
  return {};
}

Status Scheduler::checkObjectives(const Request &request, double now) const {
  if (!request.deadline && !options.firstTokenObjective)
    return {};
  if (request.deadline && *request.deadline <= now)
    return makeError(ErrorKind::DeadlineExceeded,
                     "the request's deadline has passed");
  const double seconds = predictFirstToken(request);
  if (request.deadline && now + seconds > *request.deadline)
    return makeError(ErrorKind::DeadlineExceeded, "the first token would take ",
                     seconds, " seconds, and the deadline is in ",
                     *request.deadline - now);
  if (options.firstTokenObjective && seconds > *options.firstTokenObjective)
    return makeError(ErrorKind::Overloaded, "the first token would take ",
                     seconds, " seconds, more than the objective of ",
                     *options.firstTokenObjective, "; try again later");
  return {};
}

Result<RequestId> Scheduler::admit(Request request, double now) {
  SANDWICH_RETURN_IF_ERROR(checkRequest(request));
  SANDWICH_RETURN_IF_ERROR(checkQueue(request));
  SANDWICH_RETURN_IF_ERROR(checkObjectives(request, now));
  const RequestId id = ++lastId;
  Entry &entry = entries[id];
  entry.id = id;
  entry.rank = rankOf(request);
  entry.promptLength = request.prompt.size();
  entry.longest = longestText(request);
  entry.admittedAt = now;
  for (uint32_t i = 0; i < request.continuations; ++i)
    entry.texts.emplace_back(pool);
  entry.texts[0].tokens = std::move(request.prompt);
  entry.request = std::move(request);
  order.insert(std::ranges::upper_bound(order, entry.rank, {}, &Entry::rank),
               &entry);
  return id;
}

double Scheduler::predictFirstToken(const Request &request) const {
  const int64_t rank = rankOf(request);
  uint64_t tokens = request.prompt.size();
  uint64_t texts = request.continuations;
  uint64_t blocks = BlockPool::blocksFor(tokens);
  for (const Entry *entry : order) {
    if (entry->rank > rank)
      break;
    if (entry->outcome)
      continue;
    tokens += promptTokensDue(*entry);
    texts += entry->liveTexts();
    blocks += entry->running ? entry->growth()
                             : BlockPool::blocksFor(entry->knownTokens());
  }
  const PromptPace pace = promptPace(streamsShape(), tokens);
  // A step that is under way comes first.
  const auto cycles = static_cast<double>(divideUp(tokens, pace.tokens) +
                                          (stepUnderWay ? 1 : 0));
  // Before any text has ended, none is known to take less than these may.
  const double run =
      meanRunSeconds > 0
          ? meanRunSeconds
          : static_cast<double>(request.maxTokens) * pace.cycleSeconds;
  return cycles * pace.cycleSeconds + run * turnsUntilRoom(texts, blocks);
}

double Scheduler::turnsUntilRoom(uint64_t texts, uint64_t blocks) const {
  const auto running = static_cast<double>(runningTexts());
  if (running == 0)
    return 0;
  auto beyond = [](uint64_t wanted, uint64_t had) {
    return wanted > had ? static_cast<double>(wanted - had) : 0.0;
  };
  // What a text that ends leaves: half of what it has had in the mean goes to
  // those that grow.
  const auto used = static_cast<double>(pool.blockCount() - pool.freeBlocks());
  const double left = used / running / 2;
  const double ends = std::max(beyond(texts, affordableTexts(streamsShape())),
                               beyond(blocks, pool.freeBlocks()) / left);
  // One standard deviation more, that of a Poisson process.
  return (ends + std::sqrt(ends)) / running;
}
