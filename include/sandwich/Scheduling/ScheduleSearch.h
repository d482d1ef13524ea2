//===- ScheduleSearch.h - Fast start and finetune ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The search for one schedule (Sandwich paper, section 5, "Fast-start and
/// finetune"), and how it asks for the speed of a candidate. Nothing here knows
/// how speed is found out: by measuring, or by a model.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_SCHEDULESEARCH_H
#define SANDWICH_SCHEDULING_SCHEDULESEARCH_H

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Scheduling/ThreadGrid.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sandwich {

/// Tells how long a schedule takes.
class ScheduleEvaluator {
public:
  virtual ~ScheduleEvaluator() = default;

  /// Seconds that one thread takes for one slice of `schedule`, bM x bN x bK,
  /// with the weights in memory and in no cache, and without the shape's
  /// epilogue. Its sums, bM x bN, are at most `maxBlockSums`.
  virtual Result<double> sliceSeconds(const MatmulShape &shape,
                                      const Schedule &schedule) = 0;

  /// Says that `sliceSeconds` is about to be asked for each of `schedules`.
  /// Whoever compiles code for that may do it for all at once.
  virtual Status expectSlices(const MatmulShape & /*shape*/,
                              const std::vector<Schedule> & /*schedules*/) {
    return {};
  }

  /// Seconds that the team takes for the whole matmul, weights in memory.
  virtual Result<double> seconds(const Payload &payload,
                                 const Schedule &schedule) = 0;

  /// How near a schedule is to what the machine can do at best.
  struct Limit {
    double seconds;
    /// Of the limit: the time of reading the weights with plain loads or that
    /// of multiplying as fast as the instructions can, whichever is longer,
    /// over `seconds`; 0: not known.
    double share = 0;
    /// The share that code reaches that finds all in the nearest cache. 1 where
    /// reading is the limit.
    double attainable = 1;
    /// How long reading takes, as a share of the longer of the two.
    double readShare = 1;
  };
  /// Times `schedule` beside the limit. Who knows no limit returns a share of
  /// 0.
  virtual Result<Limit> compareToLimit(const Payload & /*payload*/,
                                       const Schedule & /*schedule*/) {
    return Limit{0, 0};
  }

  /// The number of the fastest of some schedules that `seconds` hardly tells
  /// apart. Whoever measures compares them again, side by side: of many noisy
  /// measurements the least is more luck than speed. A tie goes to the first.
  virtual Result<size_t> fastest(const Payload &payload,
                                 const std::vector<Schedule> &schedules);
};

/// Why a session answers no more questions.
enum class SessionEnd : uint8_t { Running, Stopped, BudgetSpent };

/// An evaluator that counts what it measures, answers equal questions from
/// what it knows, and ends at a request or when the budget is spent. Slices are
/// remembered across shapes of the same packing: what N and K do to
/// them (how far rows lie apart) is taken to matter little beside their size.
class MeasuringSession : public ScheduleEvaluator {
public:
  struct Limits {
    /// Asked before each measurement; true ends the session (Ctrl-C).
    std::function<bool()> stop;
    double seconds = std::numeric_limits<double>::infinity();
    int64_t measurements = std::numeric_limits<int64_t>::max();
    /// Seconds since any fixed time; nothing: a steady clock.
    std::function<double()> clock;
  };

  explicit MeasuringSession(ScheduleEvaluator &evaluator);
  MeasuringSession(ScheduleEvaluator &evaluator, Limits limits);

  /// Errors: those of the evaluator; the session has ended.
  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override;
  /// Passes on those whose answers are not known.
  Status expectSlices(const MatmulShape &shape,
                      const std::vector<Schedule> &schedules) override;
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override;
  /// Counts as one measurement, if there is a limit.
  Result<Limit> compareToLimit(const Payload &payload,
                               const Schedule &schedule) override;
  /// Counts as one measurement for each schedule.
  Result<size_t> fastest(const Payload &payload,
                         const std::vector<Schedule> &schedules) override;

  /// Whether the session has ended; asks again if it was running.
  SessionEnd end();
  bool ended() { return end() != SessionEnd::Running; }

  /// Questions that the evaluator was asked, and all questions.
  int64_t measurements() const { return measured; }
  int64_t questions() const { return asked; }
  /// Since the session was made.
  double elapsedSeconds() const;

private:
  /// Everything an answer depends on.
  using Key = std::array<int64_t, 41>;
  static Key makeKey(bool slice, const Payload &payload,
                     const Schedule &schedule);
  static Key makeSliceKey(const MatmulShape &shape, const Schedule &schedule);
  /// An error if the session has ended.
  Status goOn();
  template <typename Measure>
  Result<double> answer(const Key &key, Measure measure);

  ScheduleEvaluator &evaluator;
  Limits limits;
  SessionEnd why = SessionEnd::Running;
  double begin = 0;
  int64_t measured = 0;
  int64_t asked = 0;
  std::map<Key, double> known;
};

/// What a step of a search did; the log of a search is the path it took.
enum class SearchPhase : uint8_t {
  /// A first slice of each micro-kernel on one thread.
  Probe,
  /// A slice on one thread; `threads` of the schedule means nothing.
  FastStart,
  /// A thread grid with the slice of the fast start.
  Polymerize,
  /// A grown slice under a grid.
  Finetune,
  /// Loop order and prefetch parameters of the best so far.
  Walk,
  /// Compared side by side with others that are as fast.
  Final,
  /// Compared with what the machine can do.
  Limit,
  /// The schedule of the payload before, extended to more rows without
  /// measuring.
  Extension,
  /// What a model says, without measuring.
  Model,
};
std::string_view name(SearchPhase phase);

struct SearchStep {
  SearchPhase phase = SearchPhase::FastStart;
  int64_t rows = 0;
  Schedule schedule;
  double seconds = 0;
  /// Whether the search went on from here.
  bool accepted = false;
};
using SearchLog = std::vector<SearchStep>;

/// What a search takes for granted.
struct SearchOptions {
  /// The least share of its speed that a step must gain.
  double minimumGain = 0.01;
  /// Grids whose grown slices are slower than the best by more than this share
  /// do not try the narrowest columns.
  double promisingWithin = 0.1;
  /// One slice of each micro-kernel is timed first; so many of the best start.
  size_t probedKernels = 8;
  /// So many of the fastest are compared side by side at the end.
  size_t finalCandidates = 5;
  /// A schedule that reaches so much of what is attainable is not worth
  /// searching for a better one.
  double nearLimit = 0.96;
  /// One that was so little below is compared once more.
  double nearLimitDoubt = 0.06;
};

/// A schedule and how long it takes for its payload.
struct Choice {
  int64_t rows = 0;
  Schedule schedule;
  double seconds = 0;
  /// False where it was derived without measuring.
  bool measured = true;
};

/// The largest slice that leaves every thread of the team a slice on each
/// dimension: M, N, K = 128, 64, 64 with 2 threads give 64, 32, 32. At least
/// one tile.
std::array<int64_t, 3> largestParallelSlice(const Payload &payload,
                                            const std::array<int64_t, 3> &tile,
                                            const Packing &packing);

/// Fast start: grows the slice of `kernel` from one tile by 2^t tiles on each
/// dimension in turn, t being the steps that the dimension has taken, and asks
/// for the speed at each step. A dimension that gains nothing goes back to its
/// size before and stays there, and so does one whose growth would limit how
/// many threads can share it. Errors are those of the session.
struct FastStart {
  std::array<int64_t, 3> slice;
  /// Of the slice on one thread.
  double flopsPerSecond;
};
Result<FastStart> fastStart(const Payload &payload, const MicroKernel &kernel,
                            MeasuringSession &session,
                            const SearchOptions &options, SearchLog &log);

/// Times a medium slice of each of `kernels` on one thread and returns those
/// worth a fast start, fastest first.
Result<std::vector<MicroKernel>>
probeKernels(const Payload &payload, const std::vector<MicroKernel> &kernels,
             MeasuringSession &session, const SearchOptions &options,
             SearchLog &log);

/// The next larger size of a slice along a dimension of a part: a third fewer
/// slices (one fewer, at least), as even as tiles allow.
int64_t nextSliceSize(int64_t size, int64_t part, int64_t tile);

/// Finetune (section 5, "Finetune"): each candidate under each grid, with its
/// slice and with one that holds all rows of a part. Under every grid the slice
/// of the best candidate grows along the dimension that gains most until none
/// does. Those that are promising then try the narrowest columns, with the K
/// found and with all of it. Returns the best
/// over grids and micro-kernels. An empty `grids` means all that use the team;
/// `growSlices` false keeps the slices.
struct FinetuneCandidate {
  MicroKernel kernel;
  std::array<int64_t, 3> slice;
};
Result<Choice> finetune(const Payload &payload,
                        const std::vector<FinetuneCandidate> &candidates,
                        const std::vector<std::array<int64_t, 3>> &grids,
                        bool growSlices, MeasuringSession &session,
                        const SearchOptions &options, SearchLog &log);

/// Tries the other loop order, other prefetch parameters than the rule's, other
/// chunks of K, of tiles what is streamed, whether the input is packed, and
/// stores past the caches, one after the other, and keeps what gains.
Status finetuneWalk(const Payload &payload, Choice &choice,
                    MeasuringSession &session, const SearchOptions &options,
                    SearchLog &log);

/// The fastest of the schedules that `log` has for `payload` from entry `begin`
/// on and of `others`, of those that are close to the best.
Result<Choice> chooseFinally(const Payload &payload, const Choice &best,
                             const std::vector<Schedule> &others, size_t begin,
                             MeasuringSession &session,
                             const SearchOptions &options, SearchLog &log);

/// `slice` in whole tiles and no larger than a thread's part under `grid`
/// needs.
std::array<int64_t, 3> clipSlice(const Payload &payload,
                                 const MicroKernel &kernel,
                                 std::array<int64_t, 3> slice,
                                 const std::array<int64_t, 3> &grid);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_SCHEDULESEARCH_H
