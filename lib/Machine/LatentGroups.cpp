//===- LatentGroups.cpp - Groups of cores that no system shows ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/LatentGroups.h"

#include "PairEvidence.h"

#include "sandwich/Machine/Indexes.h"
#include "sandwich/Support/RandomNumbers.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>

using namespace sandwich;
using namespace sandwich::latent;

namespace {

/// What tells that cores share something.
enum class Signal : uint8_t { Handoff, Reading, Computing };

constexpr std::array allSignals = {Signal::Handoff, Signal::Reading,
                                   Signal::Computing};

/// Groups of which the cores lose less are of no use to anybody.
constexpr double leastLoss = 0.02;

/// A part with cores that nothing tells apart.
struct SiblingPart {
  /// The first CPU of each usable core, and its place among all cores.
  std::vector<unsigned> cpus;
  std::vector<unsigned> places;
  uint64_t cores = 0;
};

/// A grouping, and what it was seen by.
struct Candidate {
  Grouping grouping;
  std::vector<Signal> signals;
};

/// Whole groups against as many cores spread over groups.
struct Comparison {
  double chance = 1;
  /// The share that cores of one group lose; of hand-offs, by how much they are
  /// shorter.
  double loss = 0;
  /// Medians of what was measured.
  double together = 0, apart = 0;
  /// Parts that lose much less than the others.
  size_t partsWithout = 0;

  bool confirms() const {
    return chance < mostChance && loss >= leastLoss && partsWithout == 0;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Siblings
//===----------------------------------------------------------------------===//

namespace {

/// The parts of a machine whose cores are siblings.
class Siblings {
public:
  explicit Siblings(const MachineNode &machine) {
    uint64_t cores = 0;
    visit(machine, cores);
  }

  /// Why groups could not be told to the latency model, if so.
  std::optional<std::string> whyNone() const {
    if (strayCores)
      return "not all cores lie in parts of several cores";
    if (std::ranges::any_of(
            kinds, [&](const auto &each) { return each != kinds.front(); }))
      return "the smallest parts of several cores are of different kinds";
    if (std::ranges::any_of(sizesOf.at(kind()), [&](uint64_t size) {
          return size != parts.front().cores;
        }))
      return "each " + kind() + " has another number of cores";
    return std::nullopt;
  }

  const std::string &kind() const { return kinds.front(); }

  std::vector<SiblingPart> parts;

private:
  struct Extent {
    uint64_t first, count;
    /// Whether a part inside has several cores.
    bool holdsPart = false;
  };

  Extent visit(const MachineNode &node, uint64_t &cores) {
    Extent extent{node.coreCount > 0 ? node.firstCore : cores, 0};
    if (node.kind == "core") {
      const MachineNode *cpu = &node;
      while (!cpu->children.empty())
        cpu = &cpu->children.front();
      found.emplace_back(extent.first, static_cast<unsigned>(cpu->index));
      ++cores;
    }
    const size_t before = found.size() - (node.kind == "core" ? 1 : 0);
    std::vector<Extent> inside;
    for (const MachineNode &child : node.children)
      inside.push_back(visit(child, cores));
    extent.count = node.coreCount > 0 ? node.coreCount : cores - extent.first;
    sizesOf[node.kind].push_back(extent.count);
    extent.holdsPart = std::ranges::any_of(inside, &Extent::holdsPart);
    if (extent.holdsPart)
      strayCores |= std::ranges::any_of(
          inside, [](const Extent &each) { return !each.holdsPart; });
    else if (extent.count > 1) {
      SiblingPart part;
      for (size_t i = before; i < found.size(); ++i) {
        part.places.push_back(
            static_cast<unsigned>(found[i].first - extent.first));
        part.cpus.push_back(found[i].second);
      }
      part.cores = extent.count;
      parts.push_back(std::move(part));
      kinds.push_back(node.kind);
      extent.holdsPart = true;
    }
    return extent;
  }

  /// Of each of `parts`.
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<uint64_t>> sizesOf;
  /// The number and the first CPU of each core met so far.
  std::vector<std::pair<uint64_t, unsigned>> found;
  bool strayCores = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

static std::string nameOf(Signal signal) {
  switch (signal) {
  case Signal::Handoff:
    return "hand-offs";
  case Signal::Reading:
    return "reading";
  case Signal::Computing:
    return "computing";
  }
  return {};
}

static std::string describe(const Grouping &grouping) {
  return "groups of " + std::to_string(grouping.cores) + " cores" +
         (grouping.stride > 1
              ? " with stride " + std::to_string(grouping.stride)
              : "");
}

namespace {

class LatentGroupSearch {
public:
  LatentGroupSearch(const Siblings &siblings, PairProbe &probe,
                    const LatentSearchOptions &options)
      : parts(siblings.parts), kind(siblings.kind()), probe(probe),
        options(options), random(options.seed),
        size(static_cast<unsigned>(parts.front().cores)),
        begin(probe.elapsedSeconds()) {}

  Result<LatentSearch> run() {
    std::vector<Candidate> candidates;
    chooseParts();
    double until = 0;
    for (Signal signal : allSignals) {
      until += sharePerSignal;
      SANDWICH_ASSIGN_OR_RETURN(std::optional<Grouping> grouping,
                                explore(signal, until));
      if (!grouping)
        continue;
      auto known =
          std::ranges::find(candidates, *grouping, &Candidate::grouping);
      if (known == candidates.end())
        candidates.push_back({*grouping, {signal}});
      else
        known->signals.push_back(signal);
    }
    for (size_t i = 0; i < candidates.size(); ++i)
      SANDWICH_RETURN_IF_ERROR(confirm(candidates[i], candidates.size() - i));
    return std::move(result);
  }

private:
  using Cores = std::vector<unsigned>;

  /// Of the time, for each signal until a candidate is found.
  static constexpr double sharePerSignal = 0.2;

  double spent() const {
    return (probe.elapsedSeconds() - begin) / options.seconds;
  }

  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  }

  void note(const std::string &sentence) { result.notes.push_back(sentence); }

  /// Enough parts to have enough pairs to tell groups from chance.
  void chooseParts() {
    constexpr size_t enoughPairs = 250;
    const size_t pairs = size_t{size} * (size - 1) / 2;
    const size_t count =
        std::min(parts.size(), (enoughPairs + pairs - 1) / pairs);
    for (size_t i = 0; i < count; ++i)
      explored.push_back(i * parts.size() / count);
    // The same silicon is in all parts; a sample tells of the others.
    constexpr size_t mostConfirming = 16, fewestConfirming = 2;
    constexpr size_t mostCores = 256;
    for (size_t i = 0; i < parts.size(); ++i)
      confirming.push_back(i);
    std::ranges::shuffle(confirming, random);
    confirming.resize(
        std::min(std::clamp(mostCores / size, fewestConfirming, mostConfirming),
                 confirming.size()));
  }

  /// Measures cores of a part, numbered among the usable ones.
  Result<double> measure(Signal signal, size_t part, const Cores &cores) {
    if (options.progress)
      SANDWICH_RETURN_IF_ERROR(options.progress(std::clamp(spent(), 0.0, 1.0)));
    std::vector<unsigned> cpus;
    for (unsigned core : cores)
      cpus.push_back(parts[part].cpus[core]);
    SANDWICH_ASSIGN_OR_RETURN(
        const double value,
        signal == Signal::Handoff   ? probe.handoffSeconds(cpus[0], cpus[1])
        : signal == Signal::Reading ? probe.bytesPerSecond(cpus)
                                    : probe.flopsPerSecond(cpus));
    if (!(value > 0))
      return makeError("a measurement of ", nameOf(signal), " found ", value);
    return value;
  }

  //===--------------------------------------------------------------------===//
  // Candidates
  //===--------------------------------------------------------------------===//

  /// Some `count` cores of a part, or fewer: half of the time any, else some
  /// that a grouping puts together.
  Cores drawCores(size_t part, size_t count,
                  const std::vector<Grouping> &groupings) {
    Cores cores(parts[part].cpus.size());
    for (unsigned i = 0; i < cores.size(); ++i)
      cores[i] = i;
    std::ranges::shuffle(cores, random);
    if (below(2) == 0) {
      const Grouping grouping = groupings[below(groupings.size())];
      // Shuffled before, so that groups and their cores come in any order.
      std::map<unsigned, size_t> order;
      for (unsigned core : cores)
        order.emplace(grouping.groupOf(parts[part].places[core]), order.size());
      std::ranges::stable_sort(cores, {}, [&](unsigned core) {
        return order[grouping.groupOf(parts[part].places[core])];
      });
    }
    cores.resize(std::min(count, cores.size()));
    return cores;
  }

  /// What is measured in about half a second, in random order.
  std::vector<Observation> drawBatch(Signal signal,
                                     const std::vector<Grouping> &groupings) {
    constexpr size_t mostPairs = 300, sets = 64;
    std::vector<Observation> batch;
    const size_t pairs = explored.size() * size * (size - 1) / 2;
    if (signal == Signal::Handoff && pairs <= mostPairs) {
      for (size_t i = 0; i < explored.size(); ++i)
        for (unsigned j = 0; j < parts[explored[i]].cpus.size(); ++j)
          for (unsigned k = 0; k < j; ++k)
            batch.push_back({i, {j, k}});
    } else {
      std::vector<size_t> counts = {2};
      if (signal != Signal::Handoff) {
        // Larger sets tell no more, but each of them of many pairs at once.
        constexpr size_t mostCores = 32;
        const size_t largest = std::min<size_t>(mostCores, size / 2);
        for (size_t count = 4; count < largest; count *= 2)
          counts.push_back(count);
        if (largest > 2)
          counts.push_back(largest);
      }
      const size_t draws = signal == Signal::Handoff
                               ? mostPairs
                               : std::max(sets, 2 * explored.size());
      for (size_t i = 0; i < draws; ++i) {
        const size_t part = i % explored.size();
        Cores cores =
            drawCores(explored[part],
                      counts[i / explored.size() % counts.size()], groupings);
        if (cores.size() > 1)
          batch.push_back({part, std::move(cores)});
      }
    }
    std::ranges::shuffle(batch, random);
    return batch;
  }

  /// The grouping that explains best what `signal` shows, if it does so well.
  /// Ends before a share of `until` of the time is spent.
  Result<std::optional<Grouping>> explore(Signal signal, double until) {
    const std::vector<Grouping> groupings = groupingsOf(size);
    std::vector<Cores> places;
    for (size_t part : explored)
      places.push_back(parts[part].places);
    PairEvidence evidence(std::move(places), size);
    constexpr double enoughEvidence = 20, enoughMargin = 10;
    constexpr size_t fewestBatches = 4;
    // Estimating takes longer than measuring a batch where there are many.
    size_t next = fewestBatches, updated = 0;
    for (size_t number = 0; spent() < until; ++number) {
      std::vector<Observation> batch = drawBatch(signal, groupings);
      if (batch.empty())
        break;
      for (Observation &each : batch) {
        // The last batch may be too long.
        if (number > 0 && spent() >= until)
          break;
        SANDWICH_ASSIGN_OR_RETURN(
            const double value,
            measure(signal, explored[each.part], each.members));
        each.value = std::log(value);
        each.batch = number;
        evidence.add(std::move(each));
      }
      if (number + 1 < next)
        continue;
      evidence.update();
      updated = evidence.size();
      next = number + 1 + std::max<size_t>(1, number / 4);
      const double best = evidence.explanations().front().evidence;
      if (best >= enoughEvidence &&
          best - evidence.rivalEvidence() >= enoughMargin &&
          evidence.chance(random) < mostChance)
        break;
    }
    if (evidence.size() == 0)
      return std::optional<Grouping>();
    if (updated < evidence.size())
      evidence.update();
    return judge(signal, evidence);
  }

  std::optional<Grouping> judge(Signal signal, const PairEvidence &evidence) {
    constexpr double leastEvidence = 12, leastMargin = 5;
    constexpr double leastDeviations = 6, leastExplained = 0.5;
    const Explanation &best = evidence.explanations().front();
    const PairEvidence::Reproduced reproduced = evidence.reproduced();
    const bool certain = best.evidence >= leastEvidence;
    if (reproduced.deviations > leastDeviations &&
        (!certain || reproduced.explained < leastExplained)) {
      note(nameOf(signal) + " differ by pairs of cores of a " + kind +
           ", but not by groups of equal size and one stride" +
           describeLinked(evidence));
      return std::nullopt;
    }
    if (!certain)
      return std::nullopt;
    if (best.evidence - evidence.rivalEvidence() < leastMargin) {
      note(nameOf(signal) + " differ by pairs of cores of a " + kind + "; " +
           describe(best.grouping) +
           " explain that, but others or distance nearly as well");
      return std::nullopt;
    }
    if (evidence.chance(random) >= mostChance) {
      note(nameOf(signal) + " suggest " + describe(best.grouping) +
           " in each " + kind + ", which may be chance with so few cores");
      return std::nullopt;
    }
    return best.grouping;
  }

  /// The CPUs that seem to share something, if they are some and not all.
  std::string describeLinked(const PairEvidence &evidence) const {
    std::string text;
    const auto linked = evidence.linkedCores();
    for (size_t part = 0; part < linked.size(); ++part)
      for (const Cores &set : linked[part]) {
        const SiblingPart &owner = parts[explored[part]];
        if (set.size() == owner.cpus.size())
          continue;
        std::vector<int64_t> cpus;
        for (unsigned core : set)
          cpus.push_back(owner.cpus[core]);
        text += (text.empty() ? ": " : "; ") + formatCpus(cpus);
      }
    return text;
  }

  //===--------------------------------------------------------------------===//
  // Fresh measurements
  //===--------------------------------------------------------------------===//

  /// The usable cores of each group.
  std::vector<Cores> groupsOf(size_t part, const Grouping &grouping) const {
    std::map<unsigned, Cores> groups;
    for (unsigned i = 0; i < parts[part].places.size(); ++i)
      groups[grouping.groupOf(parts[part].places[i])].push_back(i);
    std::vector<Cores> list;
    for (auto &[group, cores] : groups)
      list.push_back(std::move(cores));
    return list;
  }

  /// All cores of a part, once in whole groups and once in as many sets of the
  /// same sizes that are spread over all groups, so that what is of single
  /// cores is in both.
  std::pair<std::vector<Cores>, std::vector<Cores>>
  setsOf(size_t part, const Grouping &grouping) {
    std::vector<Cores> together = groupsOf(part, grouping);
    std::ranges::shuffle(together, random);
    for (Cores &group : together)
      std::ranges::shuffle(group, random);
    // Dealt like cards, a group after the other.
    std::vector<Cores> apart(together.size());
    size_t next = 0;
    for (const Cores &group : together)
      for (unsigned core : group) {
        while (apart[next % apart.size()].size() >=
               together[next % apart.size()].size())
          ++next;
        apart[next++ % apart.size()].push_back(core);
      }
    return {std::move(together), std::move(apart)};
  }

  /// Cuts sets into pairs, of different groups as far as a set has them in
  /// order and none of them is half of it.
  static std::vector<Cores> pairsOf(const std::vector<Cores> &sets) {
    std::vector<Cores> pairs;
    for (const Cores &set : sets)
      for (size_t i = 0; i < set.size() / 2; ++i)
        pairs.push_back({set[i], set[i + (set.size() + 1) / 2]});
    return pairs;
  }

  /// So many deviations do not come by chance.
  static constexpr double surely = 4;

  struct Trial {
    size_t part;
    /// Of one part at about the same time, sets of one size.
    size_t moment;
    bool together;
    double value;
  };

  Result<Comparison> compare(Signal signal, const Grouping &grouping,
                             double until) {
    std::vector<Trial> trials;
    constexpr size_t fewestRounds = 2;
    constexpr double enoughDeviations = 8;
    for (size_t round = 0; round < fewestRounds || spent() < until; ++round) {
      for (size_t part : confirming)
        SANDWICH_RETURN_IF_ERROR(
            compareOnce(signal, part, grouping, round, trials));
      if (round + 1 < fewestRounds)
        continue;
      const std::vector<Trial> rests = centered(trials);
      const auto [mean, deviation] = difference(rests);
      if (surely * deviation - mean < leastLoss)
        break;
      // Each part must be able to show that it has no groups.
      if (mean < -enoughDeviations * deviation &&
          std::ranges::all_of(
              confirming,
              [&](size_t part) {
                return enoughDeviations * difference(rests, part).second <
                       -mean;
              }))
        break;
    }
    return judge(trials);
  }

  Status compareOnce(Signal signal, size_t part, const Grouping &grouping,
                     size_t round, std::vector<Trial> &trials) {
    auto [together, apart] = setsOf(part, grouping);
    if (signal == Signal::Handoff) {
      together = pairsOf(together);
      apart = pairsOf(apart);
    }
    std::vector<std::pair<bool, const Cores *>> order;
    for (const Cores &set : together)
      order.emplace_back(true, &set);
    for (const Cores &set : apart)
      order.emplace_back(false, &set);
    std::ranges::shuffle(order, random);
    for (const auto &[isTogether, set] : order) {
      if (set->size() < 2)
        continue;
      SANDWICH_ASSIGN_OR_RETURN(const double value,
                                measure(signal, part, *set));
      const size_t moment =
          (round * parts.size() + part) * (size + 1) + set->size();
      trials.push_back({part, moment, isTogether, value});
    }
    return {};
  }

  /// Logarithms without their moment's median, outliers clipped.
  static std::vector<Trial> centered(std::vector<Trial> trials) {
    std::map<size_t, std::vector<double>> moments;
    for (Trial &trial : trials) {
      trial.value = std::log(trial.value);
      moments[trial.moment].push_back(trial.value);
    }
    std::map<size_t, double> middles;
    for (auto &[moment, values] : moments)
      middles[moment] = median(std::move(values));
    std::array<std::vector<double>, 2> rests;
    for (Trial &trial : trials) {
      trial.value -= middles[trial.moment];
      rests[trial.together].push_back(trial.value);
    }
    if (rests[0].empty() || rests[1].empty())
      return trials;
    // The clip is around the median of each kind.
    std::array<double, 2> center = {median(rests[0]), median(rests[1])};
    std::vector<double> all;
    for (const int which : {0, 1})
      for (double value : rests[which])
        all.push_back(value - center[which]);
    const double limit = clipDeviations * robustDeviation(all);
    for (Trial &trial : trials)
      trial.value = std::clamp(trial.value, center[trial.together] - limit,
                               center[trial.together] + limit);
    return trials;
  }

  /// By how much those together are larger than the others, in one part or in
  /// all, and the deviation of that.
  static std::pair<double, double>
  difference(const std::vector<Trial> &trials,
             std::optional<size_t> part = std::nullopt) {
    std::array<double, 2> counts = {}, sums = {}, squares = {};
    for (const Trial &trial : trials) {
      if (part && trial.part != *part)
        continue;
      counts[trial.together] += 1;
      sums[trial.together] += trial.value;
      squares[trial.together] += trial.value * trial.value;
    }
    double variance = 0;
    for (const int which : {0, 1}) {
      if (counts[which] < 2)
        return {0, std::numeric_limits<double>::infinity()};
      const double mean = sums[which] / counts[which];
      variance +=
          (squares[which] / counts[which] - mean * mean) / (counts[which] - 1);
    }
    return {sums[1] / counts[1] - sums[0] / counts[0],
            std::sqrt(std::max(variance, 1e-18))};
  }

  Comparison judge(const std::vector<Trial> &measured) {
    Comparison comparison;
    std::array<std::vector<double>, 2> values;
    for (const Trial &trial : measured)
      values[trial.together].push_back(trial.value);
    if (values[0].empty() || values[1].empty())
      return comparison;
    comparison.apart = median(std::move(values[0]));
    comparison.together = median(std::move(values[1]));
    std::vector<Trial> trials = centered(measured);
    const double observed = difference(trials).first;
    comparison.loss = 1 - std::exp(observed);
    for (size_t part : confirming) {
      const auto [mean, deviation] = difference(trials, part);
      comparison.partsWithout +=
          mean > observed / 2 && mean - observed > surely * deviation;
    }
    // Chance may decide only inside a moment which were together.
    std::ranges::stable_sort(trials, {}, &Trial::moment);
    std::vector<std::span<Trial>> moments;
    for (std::span<Trial> left = trials; !left.empty();) {
      auto end = std::ranges::find_if(left, [&](const Trial &trial) {
        return trial.moment != left.front().moment;
      });
      moments.push_back(left.first(static_cast<size_t>(end - left.begin())));
      left = left.subspan(moments.back().size());
    }
    comparison.chance = shareOfTries([&] {
      for (std::span<Trial> moment : moments)
        for (size_t i = moment.size(); i-- > 1;)
          std::swap(moment[i].value, moment[below(i + 1)].value);
      return difference(trials).first <= observed;
    });
    return comparison;
  }

  /// Measures a candidate afresh by all signals, with what time is left for
  /// `remaining` candidates, and adds it to the result if it is confirmed.
  Status confirm(const Candidate &candidate, size_t remaining) {
    const Grouping &grouping = candidate.grouping;
    const double share = (1 - spent()) / static_cast<double>(remaining) /
                         (allSignals.size() + 1.0);
    std::map<Signal, Comparison> comparisons;
    for (Signal signal : allSignals) {
      SANDWICH_ASSIGN_OR_RETURN(
          comparisons[signal],
          compare(signal, grouping, std::max(0.0, spent() + share)));
    }
    const std::string where = describe(grouping) + " in each " + kind;
    std::vector<Signal> confirmed;
    for (Signal signal : candidate.signals) {
      const Comparison &comparison = comparisons[signal];
      if (comparison.confirms())
        confirmed.push_back(signal);
      else
        note(nameOf(signal) + " suggest " + where +
             (comparison.partsWithout > 0
                  ? ", but not every " + kind + " has them"
                  : ", which fresh measurements do not confirm"));
    }
    if (confirmed.empty())
      return {};
    for (const FoundGroups &other : result.groups)
      if (!areNested(grouping, {other.group.cores, other.group.stride}, size)) {
        note(nameOf(confirmed.front()) + " show " + where +
             ", which lie across those of '" + other.group.name +
             "' and are left out");
        return {};
      }
    FoundGroups found;
    found.group.name =
        "latent" + std::to_string(grouping.cores) +
        (grouping.stride > 1 ? "s" + std::to_string(grouping.stride) : "");
    found.group.inside = kind;
    found.group.cores = grouping.cores;
    found.group.stride = grouping.stride;
    if (const Comparison &handoff = comparisons[Signal::Handoff];
        handoff.confirms())
      found.group.parameters.handoffSeconds = {
          handoff.together, ValueOrigin::Measured, "lines handed over inside"};
    if (const Comparison &reading = comparisons[Signal::Reading];
        reading.confirms()) {
      found.sharesReading = true;
      found.bytesApart = reading.apart;
      found.bytesTogether = reading.together;
      SANDWICH_ASSIGN_OR_RETURN(const double alone, measureAlone());
      found.bytesAlone = alone * grouping.cores;
    }
    if (const Comparison &computing = comparisons[Signal::Computing];
        computing.confirms())
      note("cores of '" + found.group.name + "' compute " +
           std::to_string(std::lround(100 * computing.loss)) +
           "% less together than apart, which no parameter tells");
    result.groups.push_back(std::move(found));
    return {};
  }

  /// What one core reads.
  Result<double> measureAlone() {
    constexpr int times = 25;
    std::vector<double> values;
    for (int i = 0; i < times; ++i) {
      const size_t part = confirming[below(confirming.size())];
      const auto core = static_cast<unsigned>(below(parts[part].cpus.size()));
      SANDWICH_ASSIGN_OR_RETURN(const double value,
                                measure(Signal::Reading, part, {core}));
      values.push_back(value);
    }
    return median(std::move(values));
  }

  const std::vector<SiblingPart> &parts;
  const std::string &kind;
  PairProbe &probe;
  const LatentSearchOptions &options;
  std::mt19937_64 random;
  /// Cores of each part, usable or not.
  const unsigned size;
  const double begin;
  /// Which parts are searched, and in which candidates are confirmed.
  std::vector<size_t> explored, confirming;
  LatentSearch result;
};

} // namespace

double sandwich::latentSearchSeconds(uint64_t cores) {
  constexpr double least = 2, eachCore = 0.3, most = 60;
  return std::min(most, least + eachCore * static_cast<double>(cores));
}

Result<LatentSearch>
sandwich::findLatentGroups(const MachineNode &machine, PairProbe &probe,
                           const LatentSearchOptions &options) {
  Siblings siblings(machine);
  LatentSearch nothing;
  if (siblings.parts.empty())
    return nothing;
  if (std::optional<std::string> reason = siblings.whyNone()) {
    nothing.notes.push_back("latent groups were not looked for: " + *reason);
    return nothing;
  }
  if (groupingsOf(static_cast<unsigned>(siblings.parts.front().cores)).empty())
    return nothing;
  return LatentGroupSearch(siblings, probe, options).run();
}
