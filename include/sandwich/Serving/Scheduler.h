//===- Scheduler.h - Who is computed when -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decides which tokens of which requests each step computes. It has no thread,
/// no clock and no engine: times come in as seconds since whenever the caller
/// likes, so that the same class serves, replays traces and simulates. The same
/// calls give the same plans.
///
/// There is one notion of progress, that of vLLM's scheduler (version 1): a
/// text has tokens that are known and tokens that are computed, and a step
/// computes some more of those known. A prompt in pieces, a generated token, a
/// prompt whose beginning is cached and a text that was preempted are the same.
///
/// Requests have one order, set at admission: by the number of the step at
/// which they came, where each level of priority counts as having come
/// `SchedulerOptions::agingSteps` steps earlier, then by their ids. The first
/// in this order takes what it needs from all others. Of the others, who runs
/// takes blocks from those behind it when it needs more, who waits takes
/// sequences and blocks from lower priorities behind it, and nobody overtakes
/// who waits.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_SCHEDULER_H
#define SANDWICH_SERVING_SCHEDULER_H

#include "sandwich/Runtime/Memory/BlockPool.h"
#include "sandwich/Serving/Proposer.h"
#include "sandwich/Serving/Request.h"
#include "sandwich/Serving/Speculation.h"
#include "sandwich/Serving/StepCostModel.h"
#include "sandwich/Serving/StepPlan.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sandwich {

struct SchedulerOptions {
  SchedulerLimits limits;
  /// Requests that may wait for their first step, and the tokens of all their
  /// prompts, at least the context.
  uint64_t maxWaitingRequests = 256;
  uint64_t maxWaitingTokens = uint64_t{1} << 20;
  /// Seconds from the admission to the first token that requests should take at
  /// most. Those that are predicted to take longer are refused.
  std::optional<double> firstTokenObjective = {};
  /// Seconds from one token of a text to the next that prompts of others should
  /// not exceed.
  std::optional<double> tokenObjective = {};
  /// Without `tokenObjective`: how many times as long as without them.
  double slowdown = 1.8;
  /// What a level of priority is worth, in steps.
  uint64_t agingSteps = 32;
  SpeculationOptions speculation = {};
};

/// Steps of a phase that were computed.
struct PhaseStatistics {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  /// From their plans until their tokens were chosen.
  double seconds = 0;
};

struct SchedulerStatistics {
  /// Requests that have no blocks: new ones, and preempted ones.
  uint64_t waitingRequests = 0;
  uint64_t waitingTokens = 0;
  uint64_t runningRequests = 0;
  uint64_t runningTexts = 0;
  /// Blocks that running requests have.
  uint64_t usedBlocks = 0;
  /// Since the beginning.
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  uint64_t promptTokensQueried = 0;
  uint64_t promptTokensHit = 0;
  PhaseStatistics prefill;
  PhaseStatistics decode;
  /// Tokens of prompts that were computed to their ends or found in the prefix
  /// cache, and tokens of texts.
  uint64_t promptTokens = 0;
  uint64_t generatedTokens = 0;
  SpeculationStatistics speculation;
  /// Whose step is under way, if one is.
  std::optional<StepPhase> phase = {};
};

/// Not safe to call from two threads at a time.
class Scheduler {
public:
  /// The pool must outlive the scheduler, which alone has sequences in it; its
  /// pending copies are for who runs the steps. Errors (InvalidArgument):
  /// limits of zero, a queue that a prompt as long as the context could never
  /// enter, and objectives that are not positive.
  static Result<std::unique_ptr<Scheduler>>
  create(BlockPool &pool, const SchedulerOptions &options, StepCostModel costs);

  Scheduler(const Scheduler &) = delete;
  Scheduler &operator=(const Scheduler &) = delete;

  /// Takes a request. Errors: InvalidArgument (no prompt, no tokens, no
  /// continuations or more than a step has sequences, a priority that is not
  /// there), ContextExceeded, CacheFull (more blocks than there are),
  /// Overloaded (the queue is full, or the first token would come later than
  /// the objective), DeadlineExceeded (passed, or before the first token would
  /// come).
  ///
  /// Who is admitted runs. After `(maxPriority - priority) * agingSteps` steps
  /// nobody comes in before it any more. Those that are before it then are less
  /// than `maxWaitingRequests` and the sequences of a decode step together; its
  /// first step comes after at most the sum of their `mostSteps`, and it ends
  /// at most its own `mostSteps` later.
  Result<RequestId> admit(Request request, double now);

  /// The most steps that an admissible request takes once it is the first in
  /// the order.
  uint64_t mostSteps(const Request &request) const;

  /// Ends a request, of which no tokens come any more. Its blocks are free at
  /// once, or after the step under way that uses them. False: there is none
  /// that has not ended.
  bool cancel(RequestId id, double now);
  /// The same for another reason than Cancelled.
  bool cancel(RequestId id, const Error &reason, double now);

  /// Plans the next step. One that is not empty is under way until it is given
  /// to `complete` or `fail`.
  StepPlan next(double now);

  /// The texts that proposed tokens would be of use for in the next step, with
  /// as many as seem to pay, or one text from time to time to see whether they
  /// do by now. Their tokens stay where they are until the next call but of
  /// this, `propose`, `cancel` and `admit`.
  std::vector<ProposalRequest> wantedProposals();
  /// Proposes `tokens` for a text that `wantedProposals` named. `next` takes
  /// of all that is proposed as much as promises the most tokens in a second,
  /// if that is more than without, and forgets it. It takes none in a step
  /// with pieces of prompts, which has too many tokens already to be cheap.
  void propose(RequestId request, uint32_t text,
               std::span<const int32_t> tokens);
  /// Proposing up to `depth` tokens for each text took `seconds`.
  void noteProposing(uint64_t depth, double seconds);

  /// The step was computed, and `sampled` are the tokens that its segments ask
  /// for, in their order: of one with proposed tokens as many as
  /// `StepSegment::drawn` says. Learns from the time since it was planned.
  StepEvents complete(const StepPlan &plan,
                      std::span<const ChosenToken> sampled, double now);

  /// For simulations: how many steps from `plan` on, which is under way,
  /// compute a token more of the same texts if nobody comes, until the first of
  /// these ends. 1 where others might begin, end or lose blocks meanwhile.
  uint64_t steadySteps(const StepPlan &plan) const;

  /// As `complete` for `count` of those steps, at most `steadySteps`, of which
  /// the last one took `lastSeconds`. All tokens are 0; the events are those of
  /// the last step.
  StepEvents completeSteady(const StepPlan &plan, uint64_t count,
                            double lastSeconds, double now);

  /// The step was not computed: the requests that it had tokens of end with
  /// `error`, and nothing of the step remains. Who would rather try the same
  /// plan again may do so first, as a step writes nothing but what it reserved.
  std::vector<RequestEnd> fail(const StepPlan &plan, const Error &error,
                               double now);

  /// The keys and values of all sequences are lost, and no step is under way:
  /// the requests that have blocks end with `error`, and what blocks held is
  /// forgotten. Those that wait go on waiting.
  std::vector<RequestEnd> loseCache(const Error &error, double now);

  /// Whether there is anything to plan or to tell.
  bool idle() const { return order.empty(); }
  SchedulerStatistics statistics() const;
  const StepCostModel &costModel() const { return costs; }
  /// Texts that may run together: those of one decode step.
  uint64_t maxTexts() const;
  /// Seconds that the first token of a request would take that came now. Takes
  /// time in proportion to the requests that are there, and no memory.
  double predictFirstToken(const Request &request) const;
  /// Seconds, at least 1 and at most an hour, after which a request of
  /// `promptTokens` tokens that is refused now as `Overloaded` is likely to be
  /// taken: when the queue will have room for it, and its first token will not
  /// come later than the objective. Takes as long as `predictFirstToken`.
  double retryAfterSeconds(uint64_t promptTokens) const;

private:
  /// Proposed tokens of a text, and of all, that their estimates remember.
  static constexpr double textMemory = 32, allMemory = 512;

  /// One continuation of a prompt.
  struct Text {
    explicit Text(BlockPool &pool) : sequence(pool) {}

    /// Known tokens whose keys and values are not computed.
    uint64_t due() const { return tokens.size() - sequence.length(); }
    bool runs() const { return joined && !finished; }
    /// Gets a token in each step, and somebody reads along.
    bool streams(uint64_t promptLength) const {
      return runs() && due() == 1 && tokens.size() > promptLength;
    }

    /// All known ones, the prompt first.
    std::vector<int32_t> tokens;
    Sequence sequence;
    /// Tokens that may follow.
    std::vector<int32_t> proposal;
    /// The last known token and those proposed, in a step that is under way.
    std::vector<int32_t> speculated;
    AcceptanceRate acceptance{textMemory};
    /// It has its own sequence: not before the trunk has computed the prompt.
    bool joined = false;
    bool finished = false;
  };

  /// What of a request its first token depends on.
  struct FirstTokenQuery {
    uint64_t promptTokens;
    uint64_t continuations;
    uint64_t maxTokens;
    int64_t rank;
  };

  struct Entry {
    RequestId id = 0;
    Request request;
    /// The step at which it would have come without priority.
    int64_t rank = 0;
    /// One for each continuation. The trunk computes the prompt for all.
    std::vector<Text> texts;
    size_t trunk = 0;
    uint64_t promptLength = 0;
    /// Tokens of the prompt whose rows of logits were told, if they are wanted.
    uint64_t scoredTokens = 0;
    /// Its prompt was computed to its end at least once.
    bool promptDone = false;
    /// Tokens that one text computes at most.
    uint64_t longest = 0;
    /// It has blocks.
    bool running = false;
    /// The last step that it was a part of, and the tokens that it got there in
    /// pieces.
    uint64_t plannedIn = 0;
    uint64_t plannedPieces = 0;
    double admittedAt = 0;
    double endedAt = 0;
    std::optional<double> startedAt;
    std::optional<double> firstTokenAt;
    uint64_t cachedTokens = 0;
    uint64_t generatedTokens = 0;
    uint64_t preemptions = 0;
    /// It has ended, which is to be told.
    std::optional<Status> outcome;

    uint64_t liveTexts() const;
    /// The first text that has not finished; there is one.
    size_t firstLive() const;
    /// Known tokens of that text.
    uint64_t knownTokens() const { return texts[firstLive()].tokens.size(); }
    /// Whether there are rows of the prompt that were not told.
    bool scores() const {
      return request.scoresPrompt && scoredTokens < promptLength;
    }
    /// The known tokens of `text` of which all but the last may come from the
    /// prefix cache.
    std::span<const int32_t> claimable(const Text &text) const;
    /// Blocks that it will soon want in addition to those it has.
    uint64_t growth() const;
  };

  /// What kinds of tokens a step has, and how long it may take.
  struct StepKind {
    bool streams;
    bool prompts;
    double seconds;
  };
  /// How prompts are computed beside the streams.
  struct PromptPace {
    /// In one step with them, else in every second step.
    bool mixed;
    /// For the step with the prompts.
    double seconds;
    /// Tokens of prompts that come with each token of the streams, and how long
    /// that takes.
    uint64_t tokens;
    double cycleSeconds;
  };
  class Budget;
  class PromptQueue;

  Scheduler(BlockPool &pool, const SchedulerOptions &options,
            StepCostModel costs)
      : pool(pool), options(options), costs(std::move(costs)) {}

  /// Tokens that a prompt gets in its steps at least, where there are so many:
  /// a step of so few takes as long as one of one token.
  static constexpr uint64_t leastPiece = 16;

  // Admission.
  Status checkRequest(const Request &request) const;
  Status checkQueue(const Request &request) const;
  Status checkObjectives(const Request &request, double now) const;
  /// Tokens that one text computes at most.
  uint64_t longestText(const Request &request) const;
  /// Blocks that it needs at most, all its texts together.
  uint64_t mostBlocks(const Request &request) const;
  int64_t rankOf(const Request &request) const;
  double predictFirstToken(const FirstTokenQuery &query) const;
  /// The part of the requests that wait, 0 to 1, that must begin before the
  /// queue takes a prompt of `promptTokens` tokens.
  double excessOfQueue(uint64_t promptTokens) const;
  /// `promptTokensDue` when the step under way is done.
  uint64_t piecesLeft(const Entry &entry) const;
  /// How often as many texts as run must end until `texts` can run, with
  /// `blocks` more blocks than now.
  double turnsUntilRoom(uint64_t texts, uint64_t blocks) const;
  uint64_t runningTexts() const;
  /// Seconds that a step may take with prompts of others, where that of the
  /// streams takes `alone` seconds without them.
  double streamPace(double alone) const;
  /// Texts that may run together and get their tokens within the objective
  /// while prompts go on, too; `maxTexts` where there is none, or where not
  /// even one can.
  uint64_t affordableTexts(const StepShape &streams) const;

  // Planning.
  void endOverdue(double now);
  /// A step of all streams and nothing else.
  StepShape streamsShape() const;
  /// Known tokens of `entry` that are to be computed in pieces.
  uint64_t promptTokensDue(const Entry &entry) const;
  StepKind chooseKind() const;
  PromptPace promptPace(const StepShape &streams, uint64_t tokensDue) const;
  /// Whether one step can hold so many streams and a prompt.
  bool canMix(uint64_t streams) const;
  /// Tokens, at most `most`, behind `computed` others, that a step may have in
  /// addition to `shape` to take at most `seconds`.
  uint64_t mostPromptTokens(const StepShape &shape, uint64_t computed,
                            uint64_t most, double seconds) const;
  void fill(StepPlan &plan, const StepKind &kind);
  /// Lets a waiting request have blocks, if there are enough or others behind
  /// it have, and `growthAhead` remain for those that run before it.
  bool start(Entry &entry, uint64_t growthAhead, StepPlan &plan);
  /// Free blocks that `start` would take.
  uint64_t blocksToStart(const Entry &entry) const;
  /// Reserves for all known tokens of a running request. False: it was
  /// preempted, as there were no blocks behind it.
  bool makeReady(Entry &entry, StepPlan &plan);
  /// Preempts one of those behind `entry`, of which it may take from all or
  /// from `lowerOnly`: lower priorities; false if none of them runs.
  bool preemptBehind(const Entry &entry, bool lowerOnly, StepPlan &plan);
  void preempt(Entry &entry, StepPlan &plan);
  void addStreams(Entry &entry, StepPlan &plan);
  void addPieces(Entry &entry, bool streamsToo, Budget &budget, StepPlan &plan);
  void addSegment(Entry &entry, size_t text, uint64_t tokens, StepPlan &plan);
  /// The tokens whose probabilities a segment of `tokens` tokens tells.
  static std::span<const int32_t> scoredBy(const Entry &entry, const Text &text,
                                           uint64_t tokens);
  void finishPlan(StepPlan &plan, double now);

  // Speculation.
  Text &textOf(const StepSegment &segment) {
    return entries.at(segment.request).texts[segment.text];
  }
  const Text &textOf(const StepSegment &segment) const {
    return entries.at(segment.request).texts[segment.text];
  }
  /// How probable it is that a token proposed for it is drawn.
  double acceptanceOf(const Text &text) const;
  /// Tokens of use that may be proposed for it.
  uint64_t mostProposals(const Entry &entry, const Text &text) const;
  /// Whether the next step of streams is to be one without proposals, to see
  /// what these save.
  bool comparesNext() const;
  /// What a step of `streams` takes without proposals.
  double plainSeconds(StepShape streams) const;
  /// Whether proposing takes so little time beside a step of `streams` that all
  /// texts are asked for proposals in any case.
  bool proposesAtNoCost(const StepShape &streams) const;
  /// How many tokens of each of `texts` promise the most, where proposing them
  /// takes time; 0: none do.
  uint64_t bestDepth(const std::vector<ProposalRequest> &texts,
                     const StepShape &streams) const;
  /// Of the proposals for each segment of `plan`, all streams, how many promise
  /// the most tokens in a second; nothing: none do.
  std::vector<uint64_t> chooseProposals(const StepPlan &plan) const;
  /// The same to see whether they do, where it is time for that.
  std::vector<uint64_t> probe(const StepPlan &plan);
  /// Adds proposed tokens to a plan that has streams only.
  void speculate(StepPlan &plan);
  void addProposals(StepSegment &segment, uint64_t count);
  void noteProposals(Text &text, const StepSegment &segment,
                     std::span<const ChosenToken> drawn);

  // What comes of steps.
  /// Lets the other texts go on from the prompt, once the trunk has it.
  void joinTexts(Entry &entry);
  /// Counts steps of the shape of `plan`.
  void countSteps(const StepPlan &plan, uint64_t count, double seconds);
  void accept(Entry &entry, uint32_t text, const ChosenToken &sampled,
              double now, StepEvents &events);
  /// The keys and values of a segment were computed, and `drawn` was sampled
  /// from its logits.
  void append(const StepSegment &segment, std::span<const ChosenToken> drawn);
  /// After a step that computed a segment of its prompt.
  void noteScores(Entry &entry, const StepSegment &segment, StepEvents &events);
  void end(Entry &entry, Status outcome, double now);
  /// Gives all blocks back.
  void release(Entry &entry);
  std::vector<RequestEnd> takeEnded();

  BlockPool &pool;
  SchedulerOptions options;
  StepCostModel costs;
  std::map<RequestId, Entry> entries;
  /// All of them, by rank and id.
  std::vector<Entry *> order;
  RequestId lastId = 0;
  uint64_t steps = 0;
  bool stepUnderWay = false;
  /// What the last step planned should take.
  double predictedSeconds = 0;
  /// Whether prompts, where they alternate with the streams, are next.
  bool streamsWereLast = true;
  RequestId lastPreempted = 0;
  uint64_t preemptions = 0;
  /// Since the beginning, by phase.
  PhaseStatistics prefill;
  PhaseStatistics decode;
  StepPhase phaseUnderWay = StepPhase::Decode;
  SpeculationStatistics speculation;
  AcceptanceRate acceptance{allMemory};
  ProbeSchedule probes;
  /// What `wantedProposals` returned last is a probe, and what the last step
  /// has of proposals.
  bool probing = false;
  bool probed = false;
  /// Steps of streams alone without proposals, and those with some since the
  /// last of these.
  uint64_t plainSteps = 0;
  uint64_t stepsSincePlain = 0;
  /// What a token proposed for each text takes.
  double secondsPerProposal = 0;
  uint64_t promptTokens = 0;
  uint64_t generatedTokens = 0;
  /// The mean seconds that requests run, the recent ones counting more.
  double meanRunSeconds = 0;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_SCHEDULER_H
