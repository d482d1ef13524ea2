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
#include <span>

using namespace sandwich;

/// As much of the objective may be predicted where others are there: those that
/// were taken get longer contexts meanwhile, and more important ones may come.
static constexpr double busyTolerance = 0.85;

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
  if (options.speculation.maxTokens > SpeculationOptions::mostTokens)
    return makeError(ErrorKind::InvalidArgument, "at most ",
                     SpeculationOptions::mostTokens,
                     " tokens can be proposed for a text, and not ",
                     options.speculation.maxTokens);
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
  const uint64_t wanted = request.maxTokens - (request.maxTokens > 0);
  return request.prompt.size() + std::min(wanted, more);
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
  auto besideOthers = [&](uint64_t most) {
    return most > maxTexts() ? most - maxTexts() : 1;
  };
  const SchedulerLimits::Phase &prefill = options.limits.prefill;
  uint64_t piece = std::min(leastPiece, besideOthers(prefill.tokens));
  if (request.scoresPrompt)
    piece = std::min(piece, besideOthers(prefill.logitRows));
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
  if (request.maxTokens == 0 && !request.scoresPrompt)
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
  // Where nothing runs or waits nobody is served faster for its refusal, a long
  // prompt would never be served, and costs that were measured while the
  // machine did something else would have everything refused: only steps that
  // are run correct them.
  if (!options.firstTokenObjective || idle() ||
      seconds <= busyTolerance * *options.firstTokenObjective)
    return {};
  return makeError(ErrorKind::Overloaded, "the first token would take ",
                   seconds, " seconds, too much for the objective of ",
                   *options.firstTokenObjective, "; try again later");
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

/// Adds up how long prompts take that are computed in turn, where each becomes
/// streams beside which the later ones are computed.
class Scheduler::PromptQueue {
public:
  /// `tokens` of prompts are going to be added.
  PromptQueue(const Scheduler &scheduler, uint64_t tokens)
      : scheduler(scheduler), left(tokens), streams(scheduler.streamsShape()),
        // More do not begin, so that paces are not asked for more often.
        mostStreams(scheduler.affordableTexts(streams)) {}

  /// A prompt lacks `due` tokens. When it has them, `texts` texts of `known`
  /// tokens each are streams.
  void add(uint64_t due, uint64_t texts, uint64_t known) {
    if (due > room) {
      // Those whose last piece was in the cycles before.
      if (joined.decodeSequences > 0 || pace.tokens == 0) {
        streams.decodeSequences += joined.decodeSequences;
        streams.decodePositions += joined.decodePositions;
        joined = {};
        pace = scheduler.promptPace(streams, left - room);
      }
      const uint64_t cycles = divideUp(due - room, pace.tokens);
      total += static_cast<double>(cycles) * pace.cycleSeconds;
      room += cycles * pace.tokens;
    }
    room -= due;
    left -= due;
    const uint64_t has = streams.decodeSequences + joined.decodeSequences;
    texts = std::min(texts, mostStreams - std::min(mostStreams, has));
    joined.decodeSequences += texts;
    joined.decodePositions += texts * (known + 1);
  }

  /// Until the last of them is computed. The last cycle has no more than is
  /// left of it.
  double seconds() const {
    if (room == 0)
      return total;
    return total - pace.cycleSeconds +
           scheduler.promptPace(streams, pace.tokens - room).cycleSeconds;
  }
  double cycleSeconds() const { return pace.cycleSeconds; }

private:
  const Scheduler &scheduler;
  /// Tokens that were not added.
  uint64_t left;
  StepShape streams;
  uint64_t mostStreams;
  /// Streams from the next cycle on.
  StepShape joined;
  /// Of the last cycle, and the tokens for which it has room.
  PromptPace pace = {};
  uint64_t room = 0;
  double total = 0;
};

uint64_t Scheduler::piecesLeft(const Entry &entry) const {
  const uint64_t underWay =
      stepUnderWay && entry.plannedIn == steps ? entry.plannedPieces : 0;
  const uint64_t due = promptTokensDue(entry);
  return due - std::min(due, underWay);
}

double Scheduler::predictFirstToken(const Request &request) const {
  return predictFirstToken({.promptTokens = request.prompt.size(),
                            .continuations = request.continuations,
                            .maxTokens = request.maxTokens,
                            .rank = rankOf(request)});
}

double Scheduler::predictFirstToken(const FirstTokenQuery &query) const {
  const std::span before(
      order.begin(),
      std::ranges::upper_bound(order, query.rank, {}, &Entry::rank));
  const uint64_t prompt = query.promptTokens;
  uint64_t tokens = prompt;
  uint64_t texts = query.continuations;
  uint64_t blocks = BlockPool::blocksFor(prompt);
  for (const Entry *entry : before) {
    if (entry->outcome)
      continue;
    tokens += piecesLeft(*entry);
    texts += entry->liveTexts();
    blocks += entry->running ? entry->growth()
                             : BlockPool::blocksFor(entry->knownTokens());
  }
  PromptQueue queue(*this, tokens);
  for (const Entry *entry : before)
    if (!entry->outcome && promptTokensDue(*entry) > 0)
      queue.add(piecesLeft(*entry), entry->liveTexts(), entry->knownTokens());
  queue.add(prompt, query.continuations, prompt);
  // Before any text has ended, none is known to take less than these may.
  const double run = meanRunSeconds > 0 ? meanRunSeconds
                                        : static_cast<double>(query.maxTokens) *
                                              queue.cycleSeconds();
  // A step that is under way comes first.
  return (stepUnderWay ? predictedSeconds : 0) + queue.seconds() +
         run * turnsUntilRoom(texts, blocks);
}

double Scheduler::excessOfQueue(uint64_t promptTokens) const {
  const SchedulerStatistics now = statistics();
  auto excess = [](uint64_t has, uint64_t more, uint64_t most) {
    if (has == 0 || has + more <= most)
      return 0.0;
    return std::min(1.0, static_cast<double>(has + more - most) /
                             static_cast<double>(has + more));
  };
  return std::max(
      excess(now.waitingRequests, 1, options.maxWaitingRequests),
      excess(now.waitingTokens, promptTokens, options.maxWaitingTokens));
}

double Scheduler::retryAfterSeconds(uint64_t promptTokens) const {
  constexpr double least = 1, most = 3600;
  // More than a context could not be served in any case.
  const uint64_t prompt =
      std::clamp<uint64_t>(promptTokens, 1, options.limits.contextLength);
  const double seconds = predictFirstToken({.promptTokens = prompt,
                                            .continuations = 1,
                                            .maxTokens = 1,
                                            .rank = rankOf(Request())});
  // Until then requests begin one after another, this one last.
  double wait = seconds * excessOfQueue(prompt);
  if (options.firstTokenObjective)
    wait =
        std::max(wait, seconds - busyTolerance * *options.firstTokenObjective);
  return std::isfinite(wait) ? std::clamp(wait, least, most) : most;
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
