//===- ConfigurationSearchTest.cpp - The best service configurations ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/ConfigurationSearch.h"

#include "TestMachines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace sandwich;
using namespace sandwich::test;

namespace {
/// Evaluates with a function, and counts.
class TestEvaluator : public ConfigurationEvaluator {
public:
  using Function = std::function<double(const ServiceConfiguration &)>;
  explicit TestEvaluator(Function function) : function(std::move(function)) {}
  Result<double> predict(const ServiceConfiguration &configuration) override {
    ++calls;
    return function(configuration);
  }
  Function function;
  uint64_t calls = 0;
};

/// The CPUs and NUMA nodes of a configuration as one value.
using Layout = std::vector<std::vector<std::vector<unsigned>>>;
Layout layoutOf(const ServiceConfiguration &configuration) {
  return {configuration.numa, configuration.prefillCores,
          configuration.decodeCores};
}
} // namespace

static size_t awake(const ServiceConfiguration &configuration) {
  size_t cores = 0;
  for (const auto &list : configuration.decodeCores)
    cores += list.size();
  return cores;
}

/// The fewer cores are awake the better, so that nothing is discarded.
static double fewerIsBetter(const ServiceConfiguration &configuration) {
  return static_cast<double>(awake(configuration));
}

/// As good as random, but always the same.
static double scattered(const ServiceConfiguration &configuration) {
  return static_cast<double>(hash(configuration).high % 1000);
}

/// A machine whose clusters of four CPUs contend if more than three are awake;
/// memory of other nodes is slow, and many processes talk a lot.
static double contention(const ServiceConfiguration &configuration) {
  std::vector<unsigned> clusters;
  for (const auto &cores : configuration.decodeCores)
    for (unsigned core : cores) {
      clusters.resize(std::max<size_t>(clusters.size(), core / 4 + 1));
      ++clusters[core / 4];
    }
  double slowest = 0;
  for (size_t i = 0; i < configuration.processes(); ++i) {
    double rate = 0;
    for (unsigned core : configuration.decodeCores[i])
      rate += clusters[core / 4] > 3 ? 0.6 : 1;
    slowest = std::max(slowest, 1000 / rate / configuration.processes() +
                                    configuration.numa[i].size() - 1);
  }
  return slowest + 0.02 * configuration.processes();
}

static ConfigurationSearchOptions exhaustive() {
  ConfigurationSearchOptions options;
  options.patience = std::numeric_limits<unsigned>::max();
  options.topK = std::numeric_limits<unsigned>::max();
  return options;
}

static std::set<Layout> layoutsOf(const SearchResult &result) {
  std::set<Layout> layouts;
  for (const ServiceConfiguration &configuration : result.configurations)
    EXPECT_TRUE(layouts.insert(layoutOf(configuration)).second);
  return layouts;
}

static const MachineLevels smallMachines[] = {
    {{"core", 12}, {"cpu", 1}},
    {{"core", 16}, {"cpu", 1}},
    {{"numa", 4}, {"core", 6}, {"cpu", 1}},
    {{"package", 2}, {"numa", 2}, {"core", 4}, {"cpu", 2}},
};

TEST(ConfigurationSearch, CoversEveryTreeRemoveAndCrossSection) {
  for (const MachineLevels &machine : smallMachines) {
    TopoTree tree = makeTree(machine);
    std::set<Layout> expected;
    uint64_t trees = 0;
    ASSERT_TRUE(
        forEachGroupedTree(tree, GroupSizes::Any, [&](const TopoTree &grouped) {
          ++trees;
          auto remove = [&](auto &&self, const TopoTree &current,
                            unsigned depth) -> void {
            if (depth > current.depth()) {
              for (unsigned cut = 0; cut <= current.depth(); ++cut)
                if (auto configuration = crossSection(current, cut))
                  expected.insert(layoutOf(*configuration));
              return;
            }
            self(self, current, depth + 1);
            for (unsigned n = 1; n < current.level(depth).arity; ++n)
              self(self, *current.remove(n, depth), depth + 1);
          };
          remove(remove, grouped, 1);
          return true;
        }));
    TestEvaluator evaluator(fewerIsBetter);
    auto result = searchConfigurations(tree, evaluator, exhaustive());
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(layoutsOf(*result), expected);
    EXPECT_EQ(evaluator.calls, expected.size());
    EXPECT_EQ(result->statistics.configurations, expected.size());
    EXPECT_EQ(result->statistics.trees, trees);
  }
}

TEST(ConfigurationSearch, KeepsWhatASearchOfEachTreeKeeps) {
  for (const MachineLevels &machine : smallMachines) {
    TopoTree tree = makeTree(machine);
    std::set<Layout> expected;
    ASSERT_TRUE(
        forEachGroupedTree(tree, GroupSizes::Any, [&](const TopoTree &grouped) {
          ConfigurationSearchOptions options = exhaustive();
          options.keepGroups = true;
          TestEvaluator evaluator(scattered);
          auto result = searchConfigurations(grouped, evaluator, options);
          EXPECT_TRUE(result);
          if (result)
            expected.merge(layoutsOf(*result));
          return static_cast<bool>(result);
        }));
    TestEvaluator evaluator(scattered);
    auto result = searchConfigurations(tree, evaluator, exhaustive());
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(layoutsOf(*result), expected);
  }
}

TEST(ConfigurationSearch, DerivationsMakeTheConfigurations) {
  TopoTree tree = makeTree({{"package", 4}, {"numa", 2}, {"cpu", 6}});
  TestEvaluator evaluator(scattered);
  auto result = searchConfigurations(tree, evaluator, exhaustive());
  ASSERT_TRUE(result);
  for (const ServiceConfiguration &configuration : result->configurations) {
    TopoTree derived = tree;
    const std::string &text = configuration.derivation;
    for (size_t at = 0; at != std::string::npos && at < text.size();
         at = text.find(' ', at), at += at != std::string::npos) {
      unsigned a, b, c;
      if (std::sscanf(text.c_str() + at, "group(%u,%u,%u)", &a, &b, &c) == 3)
        derived = *derived.group(a, b, c);
      else if (std::sscanf(text.c_str() + at, "remove(%u,%u)", &a, &b) == 2)
        derived = *derived.remove(a, b);
      else
        FAIL() << text;
    }
    EXPECT_EQ(derived.derivation(), text);
    auto cut = crossSection(derived, configuration.depth);
    ASSERT_TRUE(cut);
    EXPECT_TRUE(*cut == configuration) << text;
    EXPECT_EQ(configuration.predictedMs, scattered(configuration));
  }
}

TEST(ConfigurationSearch, FindsTheHiddenClustersOfTheKunpeng) {
  TestEvaluator evaluator(contention);
  auto result = searchConfigurations(makeKunpeng(), evaluator);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->configurations.size(), 10u);
  const ServiceConfiguration &best = result->configurations.front();
  EXPECT_EQ(best.derivation, "group(4,1,3) remove(1,4)");
  EXPECT_EQ(best.depth, 2u);
  EXPECT_EQ(best.processes(), 8u);
  EXPECT_EQ(awake(best), 144u);
  EXPECT_EQ(result->statistics.trees, 612u);
  EXPECT_LT(result->statistics.seconds, 2);
  for (size_t i = 1; i < result->configurations.size(); ++i)
    EXPECT_GE(result->configurations[i].predictedMs,
              result->configurations[i - 1].predictedMs);
}

TEST(ConfigurationSearch, DiscardsWhatDoesNotBeatItsParent) {
  // More cores are better: every tree with one remove is looked at and no
  // other.
  TestEvaluator evaluator(
      [](const auto &configuration) { return 100.0 - awake(configuration); });
  ConfigurationSearchOptions options = exhaustive();
  std::map<DropReason, uint64_t> reasons;
  options.dropped = [&](const ServiceConfiguration &configuration,
                        DropReason reason, const std::string &text) {
    ++reasons[reason];
    EXPECT_EQ(text, "no better than with fewer cores removed");
    EXPECT_EQ(configuration.derivation.find("remove("),
              configuration.derivation.rfind("remove("));
  };
  auto result = searchConfigurations(makeFlat(8), evaluator, options);
  ASSERT_TRUE(result);
  for (const ServiceConfiguration &configuration : result->configurations)
    EXPECT_EQ(awake(configuration), 8u);
  EXPECT_GT(reasons[DropReason::NoImprovement], 0u);
  EXPECT_EQ(reasons[DropReason::NoImprovement],
            result->statistics.noImprovement);
  EXPECT_EQ(result->configurations.size() + result->statistics.noImprovement,
            evaluator.calls);
}

TEST(ConfigurationSearch, AppliesOperatorLimits) {
  ConfigurationSearchOptions options = exhaustive();
  options.limits.queryHeads = 32;
  std::set<size_t> refused;
  options.dropped = [&](const ServiceConfiguration &configuration,
                        DropReason reason, const std::string &text) {
    if (reason != DropReason::OperatorLimits)
      return;
    refused.insert(configuration.processes());
    EXPECT_EQ(text, std::to_string(configuration.processes()) +
                        " processes do not divide 32 query heads");
  };
  TestEvaluator evaluator([](const ServiceConfiguration &configuration) {
    EXPECT_EQ(32 % configuration.processes(), 0u);
    return 1.0;
  });
  auto result = searchConfigurations(makeTree({{"numa", 2}, {"cpu", 12}}),
                                     evaluator, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(refused, (std::set<size_t>{6, 12, 24}));
  EXPECT_GE(result->statistics.refused, refused.size());
  EXPECT_EQ(result->notes.size(), 3u);
  EXPECT_EQ(result->notes[0], "6 processes do not divide 32 query heads");
}

TEST(ConfigurationSearch, LeavesASetWhenPatienceEnds) {
  TestEvaluator evaluator([](const auto &) { return 1.0; });
  ConfigurationSearchOptions options;
  options.patience = 5;
  auto result = searchConfigurations(makeFlat(64), evaluator, options);
  ASSERT_TRUE(result);
  const SearchStatistics &statistics = result->statistics;
  EXPECT_EQ(statistics.processSets, 7u);
  // 64 processes have one configuration.
  EXPECT_EQ(statistics.stoppedEarly, 6u);
  EXPECT_EQ(statistics.configurations, 6u * (1 + 5) + 1);
  EXPECT_EQ(evaluator.calls, statistics.configurations);
  ASSERT_EQ(result->notes.size(), 6u);
  EXPECT_EQ(result->notes[0], "1 process: left after 5 evaluations in a row "
                              "without a better configuration");
}

// 192 equal cores have ten thousand cross-sections; those that need many groups
// must not use up the patience of the others.
TEST(ConfigurationSearch, TriesRemovesOfSimpleCrossSectionsFirst) {
  TestEvaluator evaluator(contention);
  ConfigurationSearchOptions options;
  options.patience = 60;
  options.limits.queryHeads = 12;
  auto result = searchConfigurations(makeFlat(192), evaluator, options);
  ASSERT_TRUE(result);
  std::set<size_t> processes;
  for (const ServiceConfiguration &configuration : result->configurations)
    if (awake(configuration) == 144)
      processes.insert(configuration.processes());
  EXPECT_EQ(processes.count(12), 1u);
  EXPECT_EQ(processes.count(1), 1u);
}

TEST(ConfigurationSearch, KeepsTheBestAndSaysWhyOthersWent) {
  TopoTree tree = makeTree({{"numa", 2}, {"cpu", 12}});
  TestEvaluator evaluator(scattered);
  auto all = searchConfigurations(tree, evaluator, exhaustive());
  ASSERT_TRUE(all);
  ConfigurationSearchOptions options = exhaustive();
  options.topK = 4;
  std::map<DropReason, uint64_t> reasons;
  options.dropped = [&](const ServiceConfiguration &, DropReason reason,
                        const std::string &) { ++reasons[reason]; };
  auto few = searchConfigurations(tree, evaluator, options);
  ASSERT_TRUE(few);
  ASSERT_EQ(few->configurations.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(few->configurations[i] == all->configurations[i]);
  EXPECT_EQ(reasons[DropReason::BelowTop], all->configurations.size() - 4);
  EXPECT_EQ(few->statistics.belowTop, all->configurations.size() - 4);
  EXPECT_EQ(4 + reasons[DropReason::BelowTop] +
                reasons[DropReason::NoImprovement],
            few->statistics.configurations);
}

TEST(ConfigurationSearch, MoreThanThereAreGivesAll) {
  TestEvaluator evaluator(fewerIsBetter);
  ConfigurationSearchOptions options;
  options.topK = 1000;
  auto result = searchConfigurations(makeFlat(2), evaluator, options);
  ASSERT_TRUE(result);
  // One process on both cores, decode on one or both; two processes.
  EXPECT_EQ(result->configurations.size(), 3u);
}

TEST(ConfigurationSearch, OneCpuHasOneConfiguration) {
  TestEvaluator evaluator(fewerIsBetter);
  auto result =
      searchConfigurations(makeTree({{"core", 1}, {"cpu", 1}}), evaluator);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->configurations.size(), 1u);
  EXPECT_EQ(layoutOf(result->configurations[0]), (Layout{{{0}}, {{0}}, {{0}}}));
}

TEST(ConfigurationSearch, RefusesBadArguments) {
  TestEvaluator evaluator(fewerIsBetter);
  ConfigurationSearchOptions options;
  options.patience = 0;
  auto result = searchConfigurations(makeFlat(4), evaluator, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "patience is 0: the search may look at nothing; it must be at "
            "least 1");
  options = {};
  options.topK = 0;
  result = searchConfigurations(makeFlat(4), evaluator, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "no configuration would be kept: the number of best ones must be "
            "at least 1");
  options = {};
  for (double gain : {-0.1, 1.0, std::nan("")}) {
    options.leastGain = gain;
    EXPECT_FALSE(searchConfigurations(makeFlat(4), evaluator, options)) << gain;
  }
  result = searchConfigurations(*makeFlat(4).group(2, 1, 1), evaluator);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "the tree is transformed already: group(2,1,1)");
  options = {};
  options.keepGroups = true;
  result = searchConfigurations(*makeFlat(4).remove(1, 1), evaluator, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "the tree is transformed already: remove(1,1)");
  EXPECT_EQ(evaluator.calls, 0u);
}

TEST(ConfigurationSearch, EvaluatorsMayFailOrRefuse) {
  class Failing : public ConfigurationEvaluator {
    Result<double> predict(const ServiceConfiguration &) override {
      return makeError("no such machine");
    }
  } failing;
  auto result = searchConfigurations(makeFlat(4), failing);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "no such machine");

  // All cores at once cannot run, nor is a number that is none a time.
  TestEvaluator refusing([](const ServiceConfiguration &configuration) {
    if (awake(configuration) == 4)
      return std::numeric_limits<double>::infinity();
    return awake(configuration) == 3 ? std::nan("") : 1.0;
  });
  result = searchConfigurations(makeFlat(4), refusing);
  ASSERT_TRUE(result);
  EXPECT_GT(result->statistics.cannotRun, 0u);
  ASSERT_FALSE(result->configurations.empty());
  for (const ServiceConfiguration &configuration : result->configurations)
    EXPECT_LT(awake(configuration), 3u);
}

TEST(ConfigurationSearch, AsksWhyAConfigurationCannotRun) {
  class Small : public ConfigurationEvaluator {
    Result<double> predict(const ServiceConfiguration &configuration) override {
      return configuration.processes() < 4
                 ? std::numeric_limits<double>::infinity()
                 : 1.0;
    }
    std::optional<std::string>
    whyNot(const ServiceConfiguration &configuration) override {
      return std::to_string(configuration.processes()) + " are too few";
    }
  } evaluator;
  std::vector<std::string> reasons;
  ConfigurationSearchOptions options;
  options.dropped = [&](const ServiceConfiguration &configuration,
                        DropReason reason, const std::string &text) {
    if (reason != DropReason::CannotRun)
      return;
    EXPECT_LT(configuration.processes(), 4u);
    reasons.push_back(text);
  };
  auto result = searchConfigurations(makeFlat(4), evaluator, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->configurations.front().processes(), 4u);
  EXPECT_EQ(reasons.size(), result->statistics.cannotRun);
  EXPECT_EQ(reasons.front(), "1 are too few");
  // A person hears of each once.
  EXPECT_EQ(result->notes,
            (std::vector<std::string>{"1 are too few", "2 are too few"}));
}

TEST(ConfigurationSearch, EndsWithWhatItHasWhenInterrupted) {
  TestEvaluator evaluator(fewerIsBetter);
  ConfigurationSearchOptions options;
  uint64_t progress = 0;
  options.progress = [&](const SearchStatistics &statistics) {
    progress = statistics.configurations;
  };
  options.interrupted = [&] { return evaluator.calls == 20; };
  auto result = searchConfigurations(makeKunpeng(), evaluator, options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(evaluator.calls, 20u);
  EXPECT_EQ(progress, 20u);
  EXPECT_EQ(result->configurations.size(), 10u);
}

/// An interrupt may end the process before the search can return.
TEST(ConfigurationSearch, TellsWhatItWouldReturnIfInterrupted) {
  const auto describe = [](const SearchResult &result) {
    Json json = toJson(result);
    json.erase("seconds");
    // More of them may be met before the next evaluation.
    json["pruned"].erase("equal");
    return json.dump() + (result.interrupted ? " interrupted" : "");
  };
  std::vector<std::string> soFar;
  TestEvaluator all(fewerIsBetter);
  ConfigurationSearchOptions options;
  options.topK = 3;
  options.soFar = [&](const SearchResult &result) {
    soFar.push_back(describe(result));
  };
  uint64_t dropped = 0;
  options.dropped = [&](const ServiceConfiguration &, DropReason,
                        const std::string &) { ++dropped; };
  ASSERT_TRUE(searchConfigurations(makeKunpeng(), all, options));
  ASSERT_EQ(soFar.size(), all.calls - 1);
  const uint64_t droppedInAll = dropped;
  options.soFar = nullptr;
  for (const uint64_t calls : {1, 2, 20, 100}) {
    TestEvaluator some(fewerIsBetter);
    options.interrupted = [&] { return some.calls == calls; };
    auto result = searchConfigurations(makeKunpeng(), some, options);
    ASSERT_TRUE(result);
    EXPECT_EQ(describe(*result), soFar[calls - 1]);
  }
  // What is dropped is told once.
  options.interrupted = nullptr;
  dropped = 0;
  TestEvaluator again(fewerIsBetter);
  ASSERT_TRUE(searchConfigurations(makeKunpeng(), again, options));
  EXPECT_EQ(dropped, droppedInAll);
}

TEST(ConfigurationSearch, KeepsWhatItHasWhenAnEvaluationIsInterrupted) {
  /// Evaluations that take long end with an error when they are.
  class Interrupted final : public ConfigurationEvaluator {
  public:
    Result<double> predict(const ServiceConfiguration &) override {
      if (++calls < 5)
        return calls;
      return makeError("interrupted");
    }
    int calls = 0;
  };
  Interrupted evaluator;
  ConfigurationSearchOptions options;
  options.interrupted = [&] { return evaluator.calls == 5; };
  auto result = searchConfigurations(makeKunpeng(), evaluator, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->interrupted);
  EXPECT_FALSE(result->configurations.empty());
  EXPECT_EQ(result->statistics.configurations, 4u);
  // Otherwise the error is the search's.
  options.interrupted = nullptr;
  EXPECT_FALSE(searchConfigurations(makeKunpeng(), evaluator, options));
}

TEST(ConfigurationSearch, IsInterruptedBeforeAnythingIsEvaluated) {
  TestEvaluator evaluator(contention);
  ConfigurationSearchOptions options;
  // At once, while groups are listed, and while cross-sections are.
  for (unsigned patience : {0, 3, 70}) {
    unsigned asked = 0;
    options.interrupted = [&] { return asked++ == patience; };
    auto result = searchConfigurations(makeFlat(64), evaluator, options);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->interrupted);
    EXPECT_TRUE(result->configurations.empty());
    EXPECT_EQ(evaluator.calls, 0u);
    EXPECT_EQ(asked, patience + 1);
  }
}

TEST(ConfigurationSearch, IsTheSameEveryTime) {
  TestEvaluator evaluator(scattered);
  ConfigurationSearchOptions options;
  options.patience = 20;
  auto first = searchConfigurations(makeKunpeng(), evaluator, options);
  auto second = searchConfigurations(makeKunpeng(), evaluator, options);
  ASSERT_TRUE(first && second);
  Json a = toJson(*first), b = toJson(*second);
  EXPECT_GE(a["seconds"], 0.0);
  a.erase("seconds");
  b.erase("seconds");
  EXPECT_EQ(a.dump(), b.dump());
  EXPECT_EQ(a["trees"], 612);
  EXPECT_TRUE(a["pruned"].contains("no_improvement"));
}

// Two dozen cores have 204 trees, and 82 more that break A.2 and would give
// another 500 configurations.
TEST(ConfigurationSearch, TakesGroupsThatAreTranslations) {
  TestEvaluator evaluator(fewerIsBetter);
  auto result = searchConfigurations(makeFlat(24), evaluator, exhaustive());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->statistics.trees, 204u);
  EXPECT_EQ(result->statistics.configurations, 589u);
}

namespace {
/// The process counts that a model with 32 heads could have, and the notes on
/// groupings left out, of a search of so many equal cores.
struct FlatSearch {
  std::set<size_t> processes;
  std::vector<std::string> notes;
};
} // namespace

static FlatSearch searchFlat(unsigned cores) {
  FlatSearch found;
  TestEvaluator evaluator([&](const ServiceConfiguration &configuration) {
    found.processes.insert(configuration.processes());
    return 1.0;
  });
  ConfigurationSearchOptions options;
  options.patience = 10;
  options.limits.queryHeads = 32;
  auto result = searchConfigurations(makeFlat(cores), evaluator, options);
  EXPECT_TRUE(result) << cores << ": " << result.error().message;
  if (!result)
    return found;
  EXPECT_FALSE(result->configurations.empty()) << cores;
  EXPECT_LT(result->statistics.seconds, 20) << cores;
  for (const std::string &note : result->notes)
    if (note.find("too many ways") != note.npos)
      found.notes.push_back(note);
  return found;
}

TEST(ConfigurationSearch, TakesAllGroupsOfHundredsOfCores) {
  for (unsigned cores : {360, 384, 480, 576, 640, 768, 960}) {
    FlatSearch found = searchFlat(cores);
    EXPECT_TRUE(found.notes.empty()) << cores;
    for (size_t processes : {1, 2, 4, 8, 16, 32})
      EXPECT_EQ(found.processes.count(processes), cores % processes == 0)
          << cores;
  }
}

TEST(ConfigurationSearch, TakesFewerGroupsWhereThereAreTooMany) {
  const std::string tried =
      " equal parts; at depth 1 groups are tried that have neighbours or are "
      "spread evenly";
  FlatSearch some = searchFlat(2880);
  EXPECT_EQ(some.processes, (std::set<size_t>{1, 2, 4, 8, 16, 32}));
  ASSERT_EQ(some.notes.size(), 1u);
  EXPECT_EQ(some.notes[0], "there are too many ways to group 2880" + tried +
                               ", but other sizes than powers of two");
  FlatSearch fewest = searchFlat(30240);
  EXPECT_EQ(fewest.processes, (std::set<size_t>{1, 2, 4, 8, 16, 32}));
  ASSERT_EQ(fewest.notes.size(), 1u);
  EXPECT_EQ(fewest.notes[0], "there are too many ways to group 30240" + tried);
}

TEST(ConfigurationSearch, HasAPlanForEveryMachine) {
  // Primes have one process or one for each core.
  EXPECT_EQ(searchFlat(32749).processes, (std::set<size_t>{1}));
  for (unsigned cores : {16384, 27720, 32768}) {
    FlatSearch found = searchFlat(cores);
    EXPECT_GE(found.processes.size(), 4u) << cores;
  }
}

// The whole spaces; 20 million trees take seconds, so the flat machine is left
// with the usual patience.
TEST(ConfigurationSearch, SearchesMachinesOfAThousandCores) {
  for (const MachineLevels &machine : {
           MachineLevels{{"package", 4}, {"numa", 4}, {"core", 64}, {"cpu", 1}},
           MachineLevels{{"package", 2}, {"l3", 64}, {"core", 8}, {"cpu", 1}},
           MachineLevels{{"core", 1024}, {"cpu", 1}},
       }) {
    TestEvaluator evaluator(contention);
    ConfigurationSearchOptions options;
    if (machine.front().second < 1024)
      options.patience = std::numeric_limits<unsigned>::max();
    auto result = searchConfigurations(makeTree(machine), evaluator, options);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->configurations.size(), 10u);
    const ServiceConfiguration &best = result->configurations.front();
    EXPECT_EQ(awake(best), 768u) << best.derivation;
    EXPECT_LT(result->statistics.seconds, 20);
  }
}
