//===- ConfigurationSearch.cpp - The best service configurations ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/ConfigurationSearch.h"
#include "sandwich/Support/ElapsedTime.h"

#include "ClassRanking.h"
#include "CrossSection.h"
#include "RemoveWalk.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

using namespace sandwich;

PredictedTime ConfigurationEvaluator::explain(const ServiceConfiguration &) {
  return {};
}

SearchStatistics &SearchStatistics::operator+=(const SearchStatistics &other) {
  // Trees may be as many as there are numbers.
  trees = other.trees > std::numeric_limits<uint64_t>::max() - trees
              ? std::numeric_limits<uint64_t>::max()
              : trees + other.trees;
  for (auto count :
       {&SearchStatistics::crossSections, &SearchStatistics::refused,
        &SearchStatistics::configurations, &SearchStatistics::noImprovement,
        &SearchStatistics::cannotRun, &SearchStatistics::belowTop,
        &SearchStatistics::equal, &SearchStatistics::processSets,
        &SearchStatistics::processSetsInAll, &SearchStatistics::stoppedEarly})
    this->*count += other.*count;
  seconds += other.seconds;
  return *this;
}

namespace {
/// One search; its parts share the statistics and the best so far.
class Search {
public:
  Search(const SearchSpace &space, ConfigurationEvaluator &evaluator,
         const ConfigurationSearchOptions &options,
         const std::function<bool()> &interrupted,
         std::chrono::steady_clock::time_point start)
      : space(space), evaluator(evaluator), options(options),
        interrupted(interrupted), start(start), best(space, options.topK),
        notBetter(space, mostNotBetter) {}

  Result<SearchResult> run();

private:
  using ProcessSets =
      std::map<unsigned, std::map<std::vector<std::vector<unsigned>>,
                                  std::vector<CrossSection>>>;

  ProcessSets findProcessSets();
  Status searchSet(const std::vector<std::vector<unsigned>> &numa,
                   const std::vector<CrossSection> &cuts);
  void drop(RankedClass dropped, DropReason reason);
  void rankAll(const RemoveWalk &walk, const std::vector<CrossSection> &cuts);
  std::vector<RankedClass> rankedClasses() const;
  SearchResult ranking() const;
  void tellSoFar(const RemoveWalk &walk,
                 const std::vector<CrossSection> &cuts) const;
  ConfigurationClass describe(const RankedClass &ranked) const;
  std::string textOf(DropReason reason,
                     const ConfigurationClass &configuration) const;

  const SearchSpace &space;
  ConfigurationEvaluator &evaluator;
  const ConfigurationSearchOptions &options;
  const std::function<bool()> &interrupted;
  const std::chrono::steady_clock::time_point start;
  SearchResult result;
  ClassRanking best;
  /// Of those without improvement the best, should the ranking be short.
  static constexpr size_t mostNotBetter = 64;
  ClassRanking notBetter;
  /// Empty unless they are kept.
  std::map<DropReason, ClassRanking> dropped;
};
} // namespace

ConfigurationClass Search::describe(const RankedClass &ranked) const {
  auto [tree, depth] =
      space.tree(ranked.cut.level, ranked.cut.tiling, ranked.removals);
  // Nothing is removed above a cross-section of the search.
  ConfigurationClass configuration{
      *crossSection(tree, depth), ranked.equal(), {}};
  configuration.predictedMs = ranked.milliseconds;
  if (std::isfinite(ranked.milliseconds))
    configuration.time = evaluator.explain(configuration);
  return configuration;
}

std::string Search::textOf(DropReason reason,
                           const ConfigurationClass &configuration) const {
  switch (reason) {
  case DropReason::OperatorLimits:
    return options.limits.refuse(configuration.processes()).value_or("");
  case DropReason::NoImprovement:
    return options.leastGain > 0
               ? "not better by more than chance or guesses than with fewer "
                 "cores removed"
               : "no better than with fewer cores removed";
  case DropReason::CannotRun:
    return evaluator.whyNot(configuration).value_or("cannot run");
  case DropReason::BelowTop:
    return std::to_string(options.topK) + " configurations are better";
  }
  return "";
}

/// Cross-sections by how many processes they give and on which NUMA nodes;
/// those that a model allows.
Search::ProcessSets Search::findProcessSets() {
  const AwakeMask allAwake = space.allAwake();
  ProcessSets sets;
  std::map<unsigned, std::string> refused;
  for (const CrossSection &cut : crossSections(space)) {
    if (interrupted())
      return {};
    ++result.statistics.crossSections;
    unsigned processes = cut.processes(space);
    if (auto reason = options.limits.refuse(processes)) {
      ++result.statistics.refused;
      const size_t cores = cut.coresOfProcess(space, allAwake);
      drop({.milliseconds = std::numeric_limits<double>::infinity(),
            .shape = {processes, cores, cores},
            .cut = cut,
            .removals = {},
            .set = 0},
           DropReason::OperatorLimits);
      refused[processes] = std::move(*reason);
    } else {
      sets[processes][cut.numa(space)].push_back(cut);
    }
  }
  for (const auto &[processes, reason] : refused)
    result.notes.push_back(reason);
  for (const auto &[processes, ofCount] : sets)
    result.statistics.processSetsInAll += ofCount.size();
  return sets;
}

void Search::drop(RankedClass one, DropReason reason) {
  if (options.keepDropped)
    dropped.try_emplace(reason, space, std::numeric_limits<size_t>::max())
        .first->second.add(std::move(one));
}

/// Ranks what `walk` has evaluated of a set of processes.
void Search::rankAll(const RemoveWalk &walk,
                     const std::vector<CrossSection> &cuts) {
  SearchStatistics &statistics = result.statistics;
  statistics.equal += walk.equalTrees();
  const AwakeMask allAwake = space.allAwake();
  for (uint32_t number = 0; number < walk.records().size(); ++number) {
    const RemoveWalk::Record &record = walk.records()[number];
    const CrossSection &cut = cuts[record.cut];
    RankedClass one = {
        .milliseconds = record.milliseconds,
        .shape = {cut.processes(space), cut.coresOfProcess(space, allAwake),
                  cut.coresOfProcess(space, walk.maskOf(number))},
        .cut = cut,
        .removals = record.removals,
        .set = statistics.processSets};
    switch (record.state) {
    case RemoveWalk::State::Kept:
      if (std::optional<RankedClass> last = best.add(std::move(one))) {
        statistics.belowTop += last->members;
        drop(std::move(*last), DropReason::BelowTop);
      }
      break;
    case RemoveWalk::State::Discarded:
      ++statistics.noImprovement;
      (void)notBetter.add(one);
      drop(std::move(one), DropReason::NoImprovement);
      break;
    case RemoveWalk::State::CannotRun:
      ++statistics.cannotRun;
      // With cores removed it lacks what it lacks with all.
      if (record.removals.empty())
        if (std::optional<std::string> reason = evaluator.whyNot(describe(one)))
          if (std::ranges::find(result.notes, *reason) == result.notes.end())
            result.notes.push_back(std::move(*reason));
      drop(std::move(one), DropReason::CannotRun);
      break;
    }
  }
}

/// The best classes, and where these are few those that gained too little, as
/// `leastClasses` says.
std::vector<RankedClass> Search::rankedClasses() const {
  std::vector<RankedClass> classes = best.classes();
  const size_t wanted = std::min<size_t>(options.topK, options.leastClasses);
  if (classes.empty())
    return classes;
  const double least = classes.front().milliseconds;
  for (const RankedClass &each : notBetter.classes())
    if (classes.size() < wanted && each.milliseconds >= least)
      classes.push_back(each);
  std::ranges::stable_sort(classes, {}, &RankedClass::milliseconds);
  return classes;
}

/// What was found and ranked.
SearchResult Search::ranking() const {
  SearchResult found = result;
  const std::vector<RankedClass> classes = rankedClasses();
  const auto isRanked = [&](const RankedClass &one) {
    return std::ranges::any_of(classes, [&](const RankedClass &each) {
      return each.shape == one.shape && each.milliseconds == one.milliseconds;
    });
  };
  for (const RankedClass &ranked : classes)
    found.configurations.push_back(describe(ranked));
  for (const RankedClass &ranked : notBetter.classes())
    if (isRanked(ranked))
      found.statistics.noImprovement -= ranked.members;
  for (const auto &[reason, ranking] : dropped)
    for (const RankedClass &ranked : ranking.classes()) {
      if (reason == DropReason::NoImprovement && isRanked(ranked))
        continue;
      const ConfigurationClass configuration = describe(ranked);
      found.dropped.emplace_back(configuration, reason,
                                 textOf(reason, configuration));
    }
  std::ranges::stable_sort(found.dropped, {}, &DroppedClass::predictedMs);
  found.statistics.seconds = secondsSince(start);
  return found;
}

/// Tells what was found so far, with what `walk` has evaluated, which is not
/// ranked yet.
void Search::tellSoFar(const RemoveWalk &walk,
                       const std::vector<CrossSection> &cuts) const {
  ConfigurationSearchOptions silent = options;
  silent.keepDropped = false;
  Search copy(space, evaluator, silent, interrupted, start);
  copy.result = result;
  copy.best = best;
  copy.rankAll(walk, cuts);
  copy.result.interrupted = true;
  options.soFar(copy.ranking());
}

Status Search::searchSet(const std::vector<std::vector<unsigned>> &numa,
                         const std::vector<CrossSection> &cuts) {
  SearchStatistics &statistics = result.statistics;
  ServiceConfiguration configuration;
  configuration.numa = numa;
  const AwakeMask allAwake = space.allAwake();
  const CrossSection *current = nullptr;
  RemoveWalk walk(space, cuts, options.patience, options.leastGain,
                  interrupted);
  auto evaluate = [&](const CrossSection &cut,
                      const AwakeMask &mask) -> Result<RemoveWalk::Answer> {
    if (interrupted()) {
      walk.stop();
      return RemoveWalk::Answer();
    }
    if (options.soFar && statistics.configurations > 0)
      tellSoFar(walk, cuts);
    if (current != &cut) {
      current = &cut;
      cut.cores(space, allAwake, configuration.prefillCores);
    }
    cut.cores(space, mask, configuration.decodeCores);
    Result<double> milliseconds = evaluator.predict(configuration);
    // Evaluations that take long hear of it, too.
    if (!milliseconds && interrupted())
      walk.stop();
    if (!milliseconds && !interrupted())
      return milliseconds.error();
    if (!milliseconds)
      return RemoveWalk::Answer();
    ++statistics.configurations;
    if (options.progress)
      options.progress(statistics);
    return RemoveWalk::Answer{*milliseconds, evaluator.knewLast()};
  };
  SANDWICH_RETURN_IF_ERROR(walk.run(evaluate));
  ++statistics.processSets;
  if (walk.ranOutOfPatience()) {
    ++statistics.stoppedEarly;
    std::ostringstream note;
    note << numa.size() << (numa.size() == 1 ? " process" : " processes")
         << ": left after " << options.patience
         << " evaluations in a row without a better configuration";
    result.notes.push_back(note.str());
  }
  rankAll(walk, cuts);
  return {};
}

Result<SearchResult> Search::run() {
  result.statistics.trees = space.trees();
  result.notes = space.restricted();
  for (const auto &[processes, sets] : findProcessSets())
    for (const auto &[numa, cuts] : sets)
      if (!interrupted())
        SANDWICH_RETURN_IF_ERROR(searchSet(numa, cuts));
  result.interrupted = interrupted();
  return ranking();
}

Result<SearchResult>
sandwich::searchConfigurations(const TopoTree &tree,
                               ConfigurationEvaluator &evaluator,
                               const ConfigurationSearchOptions &options) {
  if (options.patience == 0)
    return makeError("patience is 0: the search may look at nothing; it must "
                     "be at least 1");
  if (options.topK == 0)
    return makeError("no configuration would be kept: the number of best ones "
                     "must be at least 1");
  if (!(options.leastGain >= 0 && options.leastGain < 1))
    return makeError("the least gain of a remove is ", options.leastGain,
                     "; it must be at least 0 and below 1");
  const auto start = std::chrono::steady_clock::now();
  // Who was told to stop is not asked again.
  bool stopped = false;
  const std::function<bool()> interrupted = [&] {
    stopped = stopped || (options.interrupted && options.interrupted());
    return stopped;
  };
  Result<SearchSpace> space =
      SearchSpace::make(tree, options.sizes, options.keepGroups, interrupted);
  if (stopped) {
    SearchResult nothing;
    nothing.interrupted = true;
    return nothing;
  }
  if (!space)
    return space.error();
  return Search(*space, evaluator, options, interrupted, start).run();
}

Json sandwich::toJson(const SearchResult &result) {
  const SearchStatistics &statistics = result.statistics;
  Json configurations = Json::array();
  for (const ConfigurationClass &configuration : result.configurations)
    configurations.push_back(toJson(configuration));
  Json json = {{"configurations", std::move(configurations)},
               {"trees", statistics.trees},
               {"evaluated", statistics.configurations},
               {"pruned",
                {{"equal", statistics.equal},
                 {name(DropReason::OperatorLimits), statistics.refused},
                 {name(DropReason::NoImprovement), statistics.noImprovement},
                 {name(DropReason::CannotRun), statistics.cannotRun},
                 {name(DropReason::BelowTop), statistics.belowTop},
                 {"stopped_early", statistics.stoppedEarly}}},
               {"seconds", statistics.seconds}};
  for (const DroppedClass &dropped : result.dropped)
    json["dropped"].push_back(toJson(dropped));
  return json;
}
