//===- Service.h - Many requests on one engine ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The thread that owns an engine: it runs the steps that the scheduler plans,
/// chooses tokens from their logits, and tells each request what it got. All
/// that serves stands on it. What is decided, `Scheduler` decides.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVICE_SERVICE_H
#define SANDWICH_SERVICE_SERVICE_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Sampling/Sampler.h"
#include "sandwich/Sampling/StopConditions.h"
#include "sandwich/Sampling/TokenConstraint.h"
#include "sandwich/Service/RestartLimit.h"
#include "sandwich/Serving/Scheduler.h"
#include "sandwich/Support/Result.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sandwich {

/// A prompt to be continued.
struct GenerationRequest {
  std::vector<int32_t> prompt;
  /// Tokens of each text at most; 0 with `promptLogProbabilities` only.
  uint64_t maxTokens = 128;
  /// Texts that continue the prompt, each by itself. The sampler of text i has
  /// the seed `sampling.seed` + i.
  uint32_t continuations = 1;
  SamplingOptions sampling = {};
  StopOptions stop = {};
  /// What the tokens of each text must keep to; null: nothing. Each text gets a
  /// clone, which accepts its tokens one by one. A constraint that allows no
  /// token, or refuses one that it had allowed, ends the request with Internal.
  std::shared_ptr<const TokenConstraint> constraint = {};
  /// Leaves special tokens out of `GeneratedToken::piece`.
  bool skipSpecialTokens = true;
  /// As in `Request`.
  uint32_t priority = 0;
  /// Seconds from now on after which there is no use in it any more.
  std::optional<double> timeout = {};
  uint64_t salt = 0;
  /// With it, the log-probability of each token of the prompt but the first is
  /// told, and so many of the most probable tokens in its place, at most
  /// `SamplingOptions::maxLogProbabilities`. The prefix cache is not read then.
  std::optional<uint32_t> promptLogProbabilities = {};
};

/// A token of a request's prompt, and how probable the model takes it to be.
struct ScoredToken {
  /// Its place in the prompt, from 1.
  uint64_t position;
  /// With its log-probability, and the most probable ones as
  /// `GenerationRequest::promptLogProbabilities` asks for.
  SampledToken token;
};

/// A token of one of a request's texts.
struct GeneratedToken {
  /// From 0.
  uint32_t text;
  SampledToken token;
  /// What it adds to the text: whole UTF-8 characters, without what may become
  /// a stop string; with all that was held back where the text ends. Empty
  /// without a tokenizer.
  std::string piece;
  /// Whether the text ends with it. A token of the model that ends it, and
  /// tokens of a stop string, are told like others.
  std::optional<FinishReason> finish;
};

/// Where a request's tokens go. Called by the service's thread, between steps:
/// what they do delays all requests, and they must neither wait for the service
/// nor throw.
struct GenerationCallbacks {
  std::function<void(const GeneratedToken &token)> onToken = {};
  /// Once, last. The status has the error that ended it, if one did.
  std::function<void(const RequestEnd &end)> onEnd = {};
  /// First, in the order of the prompt, each token once; see
  /// `GenerationRequest::promptLogProbabilities`.
  std::function<void(const ScoredToken &token)> onPromptToken = {};
};

/// Who proposes tokens that may follow, for the model to compute several of a
/// text in one step. Texts are the same as without, as far as the model
/// computes the same whatever else is in its steps (`--deterministic`).
enum class ProposalSource {
  None,
  /// The text itself, where it repeats something (`PromptLookup`).
  PromptLookup,
  /// A smaller model with the same vocabulary.
  Draft,
};

struct ServiceOptions {
  /// The limits are the engine's, and `speculation` is what `proposals` and
  /// `proposedTokens` say.
  SchedulerOptions scheduling = {};
  ProposalSource proposals = ProposalSource::None;
  /// Of each text in one step, at most; the scheduler takes as many of them as
  /// pay, by what it has measured, or none.
  uint64_t proposedTokens = 8;
  /// See `SpeculationOptions::always`.
  bool alwaysProposes = false;
  /// Sequences that generate at a time; 0: as many as a decode step takes.
  uint64_t maxSequences = 0;
  /// What steps take before any was run. Nothing: what the artifact says; else
  /// what is measured before the service begins, within `measuringSeconds`;
  /// where that fails or is 0, what the latency model says of this machine, and
  /// where it cannot, `assumedStepCosts`.
  std::optional<StepCosts> costs = {};
  /// See `StepCostMeasurementOptions::seconds`.
  double measuringSeconds = 1;
  /// Starts the ranks anew after they have failed: requests that had begun end
  /// with Unavailable, the others go on waiting. Where they fail again before a
  /// step was computed, or cannot be started, the service ends all requests
  /// and takes no more. Not for ranks on several hosts.
  bool restartRanks = false;
  /// So often within `restartWindow` seconds at most: one time more, and the
  /// service ends likewise. Nothing: without limit.
  std::optional<uint32_t> mostRestarts = {};
  double restartWindow = 600;
  /// Told, by the service's thread, of ranks that are restarted.
  LogCallback log = {};
};

struct ServiceStatistics {
  SchedulerStatistics scheduler;
  BlockPoolStatistics blocks;
  uint64_t blockCount = 0;
  /// Those that no request has, but the prefix cache.
  uint64_t idleCachedBlocks = 0;
  /// Since the beginning: requests taken, those that the scheduler refused, and
  /// tokens of all texts.
  uint64_t requests = 0;
  uint64_t refusedRequests = 0;
  uint64_t generatedTokens = 0;
  /// How often the ranks were started anew.
  uint64_t rankRestarts = 0;
  /// Seconds since a step has ended last, or since there is something to
  /// compute if that was later; 0 while there is nothing.
  double stalledSeconds = 0;
  /// Seconds since the service began, which is 0 in `RequestEnd`'s times.
  double seconds = 0;
  /// It takes no more requests.
  bool draining = false;
};

/// A request, and where its tokens go.
struct Submission {
  GenerationRequest request;
  GenerationCallbacks callbacks = {};
};

struct LiveRequest;
class StepOutput;

/// All calls may come from any thread, and none waits for a step unless it says
/// so. A process that forks begins its services afterwards: in a child, calls
/// fail with Unavailable, and those that wait return.
class Service {
public:
  /// Takes the engine, which nobody else uses from then on, and the tokenizer,
  /// if there is one, for texts and stop strings; with `ProposalSource::Draft`
  /// also that of the smaller model. Errors: options that `Scheduler::create`
  /// refuses, a smaller model that is missing or has another vocabulary
  /// (InvalidArgument), or a thread that the system does not grant.
  static Result<std::unique_ptr<Service>>
  create(std::unique_ptr<Engine> engine, std::optional<Tokenizer> tokenizer,
         const ServiceOptions &options = {},
         std::unique_ptr<Engine> draft = nullptr);

  Service(const Service &) = delete;
  Service &operator=(const Service &) = delete;
  /// Ends all requests with Cancelled, after the step under way. Not to be
  /// called by a callback.
  ~Service();

  const Artifact &artifact() const { return engine->artifact(); }
  const proto::ModelConfiguration &model() const { return engine->model(); }
  /// Where the threads of each rank are.
  const std::vector<RankPlacement> &rankPlacement() const {
    return engine->rankPlacement();
  }
  const std::optional<Tokenizer> &tokenizer() const { return textTokenizer; }

  /// Takes a request. Errors: InvalidArgument (options out of range, a token
  /// outside of the vocabulary, stop strings without a tokenizer), Unavailable
  /// (the ranks have failed and are not restarted, or the service drains), and
  /// what
  /// `Scheduler::admit` refuses.
  Result<RequestId> submit(GenerationRequest request,
                           GenerationCallbacks callbacks);
  /// Takes all of these requests, of which none has a part in a step before
  /// all are taken, or none of them. Errors as of one: of the first that is
  /// refused.
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions);
  /// Ends a request with Cancelled; false: it has ended, or never was. Its
  /// blocks are free after the step under way at the latest.
  bool cancel(RequestId id);

  /// Refuses requests from now on, and returns when all have ended and their
  /// callbacks have returned.
  void drain();
  /// The same, but requests that have not ended after `seconds` seconds are
  /// ended with Unavailable; returns when the step under way is done then.
  /// Whether all ended by themselves.
  bool drainWithin(double seconds);

  /// Unavailable where the ranks have failed and are not started anew: no
  /// request is served any more.
  Status checkRunning();

  /// Texts that one request may have.
  uint64_t maxContinuations() const { return scheduler->maxTexts(); }

  ServiceStatistics statistics();
  /// After how many seconds, at least 1, a request of `promptTokens` tokens
  /// that was refused as Overloaded may be tried again; see
  /// `Scheduler::retryAfterSeconds`.
  double retryAfterSeconds(uint64_t promptTokens);

private:
  using Clock = std::chrono::steady_clock;

  Service(std::unique_ptr<Engine> engine, std::optional<Tokenizer> tokenizer,
          const ServiceOptions &options)
      : engine(std::move(engine)), textTokenizer(std::move(tokenizer)),
        restartsRanks(options.restartRanks),
        restartLimit(options.mostRestarts, options.restartWindow),
        log(options.log) {}

  double now() const;
  /// Whether this process is a fork of the one that created the service: its
  /// thread is missing, and the mutex may be held for ever.
  bool isFork() const { return ::getpid() != process; }
  /// `checkRunning`, of a process that has the service, under the mutex.
  Status running() const;
  Status check(const GenerationRequest &request) const;
  std::shared_ptr<LiveRequest> makeLive(const GenerationRequest &request,
                                        GenerationCallbacks callbacks) const;
  /// Under the mutex.
  Result<RequestId> admit(GenerationRequest request,
                          std::shared_ptr<LiveRequest> made);

  // The service's thread.
  void serve();
  /// Runs a step, if there is one to run; false: there is nothing to do.
  bool runStep(std::unique_lock<std::mutex> &lock);
  /// Lets tokens be proposed for the next step, if they are wanted.
  void propose(std::unique_lock<std::mutex> &lock);
  /// Where the ranks have failed, and are to be restarted.
  void restartRanks(std::unique_lock<std::mutex> &lock);
  Result<StepResult> compute(const StepPlan &plan,
                             std::unique_lock<std::mutex> &lock);
  /// Chooses the tokens of a step that was computed, and tells the scheduler.
  StepEvents complete(const StepPlan &plan, const StepResult &result,
                      StepOutput &output, std::unique_lock<std::mutex> &lock);
  using Ended =
      std::vector<std::pair<std::shared_ptr<LiveRequest>, RequestEnd>>;
  /// Takes the requests that `ended` from those that live.
  Ended takeEnded(const std::vector<RequestEnd> &ended);
  static void tell(const Ended &ended);

  std::unique_ptr<Engine> engine;
  const std::optional<Tokenizer> textTokenizer;
  const bool restartsRanks;
  /// Of the service's thread.
  RestartLimit restartLimit;
  const LogCallback log;
  const Clock::time_point start = Clock::now();
  const pid_t process = ::getpid();

  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
  };
  /// Of all that follows, and of the engine's pool. Never ends in a fork, where
  /// it would wait for threads that are not there.
  std::unique_ptr<Meeting> meeting = std::make_unique<Meeting>();
  std::unique_ptr<Scheduler> scheduler;
  /// Null: nobody proposes. Used by the service's thread.
  std::unique_ptr<Proposer> proposer;
  std::map<RequestId, std::shared_ptr<LiveRequest>> live;
  bool draining = false;
  bool stopping = false;
  /// Callbacks are being called.
  bool delivering = false;
  /// Why no step will run any more, where ranks were to be restarted.
  Status failedForGood;
  /// Whether a step was computed since the ranks were started.
  bool computedSinceStart = true;
  uint64_t requests = 0;
  uint64_t refusedRequests = 0;
  uint64_t generatedTokens = 0;
  uint64_t rankRestarts = 0;
  /// When a step has ended last, or the first request came after there was
  /// none.
  double progressAt = 0;

  /// Of the step under way, until its tokens are chosen.
  CoreLease cores;
  std::vector<Segment> segments;
  std::thread thread;
};

} // namespace sandwich

#endif // SANDWICH_SERVICE_SERVICE_H
