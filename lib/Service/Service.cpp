//===- Service.cpp - Many requests on one engine --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"

#include "DraftModel.h"
#include "LiveRequest.h"
#include "StepCostPrediction.h"
#include "StepOutput.h"

#include "sandwich/Service/StepCostMeasurement.h"
#include "sandwich/Serving/PromptLookup.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

static SchedulerLimits limitsOf(const Engine &engine, uint64_t maxSequences) {
  const StepLimits &prefill = engine.limits(PhaseKind::Prefill);
  const StepLimits &decode = engine.limits(PhaseKind::Decode);
  auto sequences = [&](uint64_t most) {
    return maxSequences ? std::min(maxSequences, most) : most;
  };
  return {.prefill = {.tokens = prefill.tokens,
                      .sequences = sequences(prefill.tokens),
                      .logitRows = prefill.logitRows},
          .decode = {.tokens = decode.tokens,
                     .sequences = sequences(decode.tokens),
                     .logitRows = decode.logitRows},
          .contextLength = engine.contextLength()};
}

/// What steps take before the service has run any, as `ServiceOptions` says.
static StepCosts initialCosts(Engine &engine, const ServiceOptions &options) {
  if (options.costs)
    return *options.costs;
  if (std::optional<StepCosts> known =
          stepCostsOf(engine.artifact().manifest()))
    return *known;
  if (options.measuringSeconds > 0)
    if (Result<StepCosts> measured =
            measureStepCosts(engine, {.seconds = options.measuringSeconds}))
      return *measured;
  if (Result<StepCosts> predicted =
          predictStepCosts(engine, limitsOf(engine, options.maxSequences)))
    return *predicted;
  return assumedStepCosts();
}

/// Who proposes tokens for `engine`'s texts, as `options` say; null: nobody.
static Result<std::unique_ptr<Proposer>>
makeProposer(const Engine &engine, const ServiceOptions &options,
             std::unique_ptr<Engine> draft) {
  std::unique_ptr<Proposer> proposer;
  switch (options.proposals) {
  case ProposalSource::None:
    break;
  case ProposalSource::PromptLookup:
    proposer = std::make_unique<PromptLookup>();
    break;
  case ProposalSource::Draft:
    if (!draft)
      return makeError(ErrorKind::InvalidArgument,
                       "there is no smaller model to propose tokens");
    SANDWICH_ASSIGN_OR_RETURN(
        proposer,
        DraftModel::create(std::move(draft), engine.artifact(), options.log));
  }
  return proposer;
}

Result<std::unique_ptr<Service>>
Service::create(std::unique_ptr<Engine> engine,
                std::optional<Tokenizer> tokenizer,
                const ServiceOptions &options, std::unique_ptr<Engine> draft) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Proposer> proposer,
                            makeProposer(*engine, options, std::move(draft)));
  SANDWICH_ASSIGN_OR_RETURN(
      StepCostModel costs,
      StepCostModel::create(initialCosts(*engine, options)));
  SchedulerOptions scheduling = options.scheduling;
  scheduling.limits = limitsOf(*engine, options.maxSequences);
  scheduling.speculation = {.maxTokens = proposer ? options.proposedTokens : 0,
                            .always = options.alwaysProposes};
  std::unique_ptr<Service> service(
      new Service(std::move(engine), std::move(tokenizer), options));
  service->proposer = std::move(proposer);
  SANDWICH_ASSIGN_OR_RETURN(service->scheduler,
                            Scheduler::create(service->engine->blockPool(),
                                              scheduling, std::move(costs)));
  SANDWICH_ASSIGN_OR_RETURN(
      service->thread,
      startThread("the service", [&self = *service] { self.serve(); }));
  return service;
}

Service::~Service() {
  if (!thread.joinable())
    return;
  if (isFork()) {
    // What the threads of the parent were changing is left as it is.
    thread.detach();
    (void)meeting.release();
    (void)scheduler.release();
    (void)proposer.release();
    (void)new std::map<RequestId, std::shared_ptr<LiveRequest>>(
        std::move(live));
    return;
  }
  {
    std::lock_guard lock(meeting->mutex);
    stopping = true;
    for (const auto &[id, each] : live)
      scheduler->cancel(id, now());
  }
  meeting->changed.notify_all();
  thread.join();
}

double Service::now() const { return secondsSince(start); }

void Service::drain() {
  if (isFork())
    return;
  std::unique_lock lock(meeting->mutex);
  draining = true;
  meeting->changed.wait(lock, [&] { return live.empty() && !delivering; });
}

bool Service::drainWithin(double seconds) {
  if (isFork())
    return false;
  // Longer waits than this the clock cannot count.
  constexpr double longest = 1e9;
  const std::chrono::duration<double> patience(
      std::isnan(seconds) ? 0.0 : std::clamp(seconds, 0.0, longest));
  const auto done = [&] { return live.empty() && !delivering; };
  std::unique_lock lock(meeting->mutex);
  draining = true;
  if (meeting->changed.wait_for(lock, patience, done))
    return true;
  bool ended = false;
  for (const auto &[id, each] : live)
    ended |= scheduler->cancel(
        id, makeError(ErrorKind::Unavailable, "the server is shutting down"),
        now());
  meeting->changed.notify_all();
  meeting->changed.wait(lock, done);
  return !ended;
}

double Service::retryAfterSeconds(uint64_t promptTokens) {
  if (isFork())
    return 1;
  std::lock_guard lock(meeting->mutex);
  return scheduler->retryAfterSeconds(promptTokens);
}

ServiceStatistics Service::statistics() {
  if (isFork())
    return {};
  std::lock_guard lock(meeting->mutex);
  return {.scheduler = scheduler->statistics(),
          .blocks = engine->blockPool().statistics(),
          .blockCount = engine->blockPool().blockCount(),
          .idleCachedBlocks = engine->blockPool().idleCachedBlocks(),
          .requests = requests,
          .refusedRequests = refusedRequests,
          .generatedTokens = generatedTokens,
          .rankRestarts = rankRestarts,
          .stalledSeconds = scheduler->idle() ? 0 : now() - progressAt,
          .seconds = now(),
          .draining = draining || stopping};
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

static Error errorOfFork() {
  return makeError(ErrorKind::Unavailable,
                   "this process is a fork of the one that began the service, "
                   "and has none");
}

Status Service::running() const {
  // Ranks that are restarted are not to be asked, only waited for.
  return restartsRanks ? failedForGood : engine->checkRunning();
}

Status Service::checkRunning() {
  if (isFork())
    return errorOfFork();
  std::lock_guard lock(meeting->mutex);
  return running();
}

Status Service::check(const GenerationRequest &request) const {
  if (isFork())
    return errorOfFork();
  // Before anything that takes time in proportion to the prompt.
  SANDWICH_RETURN_IF_ERROR(
      checkPromptLength(engine->model(), request.prompt.size()));
  SANDWICH_RETURN_IF_ERROR(engine->checkTokens(request.prompt));
  if (request.timeout && !std::isfinite(*request.timeout))
    return makeError(ErrorKind::InvalidArgument, "timeout is ",
                     *request.timeout, "; it must be a number of seconds");
  SANDWICH_RETURN_IF_ERROR(request.sampling.validate());
  SANDWICH_RETURN_IF_ERROR(request.sampling.checkTokens(engine->vocabSize()));
  if (request.promptLogProbabilities.value_or(0) >
      SamplingOptions::maxLogProbabilities)
    return makeError(ErrorKind::InvalidArgument, "prompt-log-probabilities is ",
                     *request.promptLogProbabilities, "; it must be from 0 to ",
                     SamplingOptions::maxLogProbabilities);
  SANDWICH_RETURN_IF_ERROR(request.stop.validate());
  SANDWICH_RETURN_IF_ERROR(engine->checkTokens(request.stop.tokens));
  if (!request.stop.strings.empty() && !textTokenizer)
    return makeError(ErrorKind::InvalidArgument,
                     "the model has no tokenizer, so that it cannot stop at a "
                     "string");
  return {};
}

std::shared_ptr<LiveRequest>
Service::makeLive(const GenerationRequest &request,
                  GenerationCallbacks callbacks) const {
  auto made = std::make_shared<LiveRequest>();
  made->callbacks = std::move(callbacks);
  made->promptTop = request.promptLogProbabilities.value_or(0);
  const auto &ends = engine->model().eos_token_ids();
  const std::vector<int32_t> endTokens(ends.begin(), ends.end());
  const StopConditions stop(request.stop, request.sampling, endTokens);
  for (uint32_t text = 0; text < request.continuations; ++text)
    made->texts.emplace_back(request, text, stop, textTokenizer);
  return made;
}

Result<RequestId> Service::admit(GenerationRequest request,
                                 std::shared_ptr<LiveRequest> made) {
  SANDWICH_RETURN_IF_ERROR(running());
  if (draining || stopping)
    return makeError(ErrorKind::Unavailable,
                     "the service ends, and takes no more requests");
  const double time = now();
  const bool wasIdle = scheduler->idle();
  Request scheduled{.prompt = std::move(request.prompt),
                    .maxTokens = request.maxTokens,
                    .continuations = request.continuations,
                    .priority = request.priority,
                    .salt = request.salt,
                    .scoresPrompt = request.promptLogProbabilities.has_value()};
  if (request.timeout)
    scheduled.deadline = time + *request.timeout;
  Result<RequestId> id = scheduler->admit(std::move(scheduled), time);
  if (!id) {
    ++refusedRequests;
    return id;
  }
  try {
    live.emplace(*id, std::move(made));
  } catch (...) {
    (void)scheduler->cancel(*id, time);
    throw;
  }
  ++requests;
  if (wasIdle)
    progressAt = time;
  return id;
}

Result<std::vector<RequestId>>
Service::submit(std::vector<Submission> submissions) {
  std::vector<std::shared_ptr<LiveRequest>> made;
  for (Submission &each : submissions) {
    SANDWICH_RETURN_IF_ERROR(check(each.request));
    // Only as many as can be admitted: each takes memory.
    if (each.request.continuations > maxContinuations())
      return makeError(ErrorKind::InvalidArgument, each.request.continuations,
                       " continuations are more than the ", maxContinuations(),
                       " sequences that one step takes");
    made.push_back(makeLive(each.request, std::move(each.callbacks)));
  }
  std::vector<RequestId> ids;
  ids.reserve(submissions.size());
  std::lock_guard lock(meeting->mutex);
  // Nobody hears of what was taken before one was refused.
  const auto giveBack = [&] {
    for (RequestId taken : ids) {
      live.erase(taken);
      (void)scheduler->cancel(taken, now());
      --requests;
    }
    meeting->changed.notify_all();
  };
  try {
    for (size_t i = 0; i < submissions.size(); ++i) {
      Result<RequestId> id =
          admit(std::move(submissions[i].request), std::move(made[i]));
      if (!id) {
        giveBack();
        return id.error();
      }
      ids.push_back(*id);
    }
  } catch (...) {
    giveBack();
    throw;
  }
  meeting->changed.notify_all();
  return ids;
}

Result<RequestId> Service::submit(GenerationRequest request,
                                  GenerationCallbacks callbacks) {
  std::vector<Submission> one;
  one.push_back({std::move(request), std::move(callbacks)});
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<RequestId> ids,
                            submit(std::move(one)));
  return ids.front();
}

bool Service::cancel(RequestId id) {
  if (isFork())
    return false;
  std::lock_guard lock(meeting->mutex);
  const bool cancelled = scheduler->cancel(id, now());
  // Its end is to be told.
  meeting->changed.notify_all();
  return cancelled;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Service::serve() {
  std::unique_lock lock(meeting->mutex);
  while (true) {
    if (restartsRanks)
      restartRanks(lock);
    if (runStep(lock))
      continue;
    meeting->changed.notify_all();
    if (stopping && scheduler->idle())
      return;
    // Deadlines pass without a call.
    constexpr std::chrono::milliseconds often(10);
    if (scheduler->idle())
      meeting->changed.wait(lock,
                            [&] { return stopping || !scheduler->idle(); });
    else
      meeting->changed.wait_for(lock, often);
  }
}

void Service::restartRanks(std::unique_lock<std::mutex> &lock) {
  const Status running = engine->checkRunning();
  if (running || !failedForGood || (stopping && scheduler->idle()))
    return;
  // What waits needs nothing of what is lost.
  Ended ended = takeEnded(scheduler->loseCache(running.error(), now()));
  delivering = true;
  lock.unlock();
  tell(ended);
  ended.clear();
  Status restarted = running;
  if (std::exchange(computedSinceStart, false)) {
    restarted = restartLimit.take(now());
    if (restarted) {
      report(log, LogLevel::Warning,
             running.error().message + "; starting the ranks anew");
      restarted = engine->restart(log);
    } else {
      restarted = restarted.error().inContext(running.error().message);
    }
  }
  lock.lock();
  delivering = false;
  rankRestarts += bool(restarted);
  if (!restarted)
    failedForGood =
        makeError(ErrorKind::Unavailable,
                  "the ranks failed again: ", restarted.error().message);
}

Result<StepResult> Service::compute(const StepPlan &plan,
                                    std::unique_lock<std::mutex> &lock) {
  segments.clear();
  for (const StepSegment &segment : plan.segments)
    segments.push_back({segment.sequence, segment.tokens,
                        segment.wantsAllRows() ? LogitRows::All
                        : segment.samples > 0  ? LogitRows::Last
                                               : LogitRows::None});
  try {
    SANDWICH_RETURN_IF_ERROR(failedForGood);
    SANDWICH_RETURN_IF_ERROR(engine->begin(
        segments, plan.phase() == StepPhase::Decode ? PhaseKind::Decode
                                                    : PhaseKind::Prefill));
  } catch (const std::exception &exception) {
    return makeError(ErrorKind::Internal,
                     "a step could not be prepared: ", exception.what());
  }
  lock.unlock();
  engine->compute(&cores);
  lock.lock();
  Result<StepResult> result = engine->finish();
  if (result)
    computedSinceStart = true;
  return result;
}

void Service::tell(const Ended &ended) {
  for (const auto &[request, end] : ended)
    if (request->callbacks.onEnd)
      request->callbacks.onEnd(end);
}

Service::Ended Service::takeEnded(const std::vector<RequestEnd> &ended) {
  Ended taken;
  for (const RequestEnd &end : ended) {
    auto found = live.find(end.request);
    if (found == live.end())
      continue;
    taken.emplace_back(std::move(found->second), end);
    live.erase(found);
    if (proposer)
      proposer->forget(end.request);
    if (Status &failure = taken.back().first->failure; !failure)
      taken.back().second.status = failure;
  }
  return taken;
}

StepEvents Service::complete(const StepPlan &plan, const StepResult &result,
                             StepOutput &output,
                             std::unique_lock<std::mutex> &lock) {
  lock.unlock();
  try {
    output.choose(plan, result, *engine);
    cores.release();
    lock.lock();
  } catch (const std::exception &exception) {
    lock.lock();
    output.clear();
    return {.scores = {},
            .tokens = {},
            .ended = scheduler->fail(
                plan,
                makeError(ErrorKind::Internal,
                          "no tokens could be chosen: ", exception.what()),
                now())};
  }
  StepEvents events = scheduler->complete(plan, output.chosen(), now());
  generatedTokens += events.tokens.size();
  for (RequestId failed : output.failed())
    (void)scheduler->cancel(failed, now());
  return events;
}

void Service::propose(std::unique_lock<std::mutex> &lock) {
  if (!proposer)
    return;
  const std::vector<ProposalRequest> wanted = scheduler->wantedProposals();
  if (wanted.empty())
    return;
  // Nothing that is wanted goes away while others submit and cancel.
  lock.unlock();
  const auto start = Clock::now();
  std::vector<std::vector<int32_t>> proposals;
  try {
    proposals = proposer->propose(wanted);
  } catch (const std::exception &) {
    // Texts go on without proposals where there is no memory for them.
    proposals.clear();
  }
  const double seconds = secondsSince(start);
  lock.lock();
  uint64_t depth = 0;
  for (size_t i = 0; i < proposals.size(); ++i) {
    scheduler->propose(wanted[i].request, wanted[i].text, proposals[i]);
    depth = std::max<uint64_t>(depth, proposals[i].size());
  }
  scheduler->noteProposing(depth, seconds);
}

bool Service::runStep(std::unique_lock<std::mutex> &lock) {
  propose(lock);
  StepPlan plan = scheduler->next(now());
  StepEvents events;
  StepOutput output(plan, live);
  auto ended = takeEnded(plan.ended);
  if (!plan.segments.empty()) {
    Result<StepResult> result = compute(plan, lock);
    // What other models' steps took is no cost of this one.
    plan.plannedAt += cores.secondsWaited();
    if (result)
      events = complete(plan, *result, output, lock);
    else
      events.ended = scheduler->fail(plan, result.error(), now());
    cores.release();
    progressAt = now();
    for (auto &each : takeEnded(events.ended))
      ended.push_back(std::move(each));
  }
  if (plan.segments.empty() && ended.empty())
    return false;
  delivering = true;
  lock.unlock();
  output.tell(events);
  tell(ended);
  // What callbacks hold may end by a call of this class.
  output.clear();
  ended.clear();
  lock.lock();
  delivering = false;
  return true;
}
