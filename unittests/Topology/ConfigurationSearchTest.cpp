//===- ConfigurationSearchTest.cpp - The best service configurations ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/ConfigurationSearch.h"

#include "Emulation.h"

#include "TestMachines.h"
#include "sandwich/Topology/Search/OncePerClass.h"

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
  PredictedTime explain(const ServiceConfiguration &configuration) override {
    return explanation ? explanation(configuration) : PredictedTime();
  }
  Function function;
  std::function<PredictedTime(const ServiceConfiguration &)> explanation;
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

/// As good as random, but always the same, and no two are equal.
static double scattered(const ServiceConfiguration &configuration) {
  return static_cast<double>(hash(configuration).high >> 12) * 1e-9;
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
  for (const ConfigurationClass &configuration : result.configurations) {
    EXPECT_TRUE(layouts.insert(layoutOf(configuration)).second);
    EXPECT_EQ(configuration.equal.count(), 0u);
  }
  return layouts;
}

/// The configurations of the classes, and those that are equal to one.
static uint64_t membersOf(const SearchResult &result) {
  uint64_t members = 0;
  for (const ConfigurationClass &configuration : result.configurations)
    members += 1 + configuration.equal.count();
  return members;
}

static uint64_t membersOf(const SearchResult &result, DropReason reason) {
  uint64_t members = 0;
  for (const DroppedClass &dropped : result.dropped)
    if (dropped.reason == reason)
      members += 1 + dropped.equal.count();
  return members;
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
    std::set<Layout> evaluated;
    TestEvaluator evaluator([&](const ServiceConfiguration &configuration) {
      EXPECT_TRUE(evaluated.insert(layoutOf(configuration)).second);
      return fewerIsBetter(configuration);
    });
    auto result = searchConfigurations(tree, evaluator, exhaustive());
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(evaluated, expected);
    EXPECT_EQ(membersOf(*result), expected.size());
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
  options.keepDropped = true;
  auto result = searchConfigurations(makeFlat(8), evaluator, options);
  ASSERT_TRUE(result);
  for (const ServiceConfiguration &configuration : result->configurations)
    EXPECT_EQ(awake(configuration), 8u);
  ASSERT_FALSE(result->dropped.empty());
  for (const DroppedClass &dropped : result->dropped) {
    EXPECT_EQ(dropped.reason, DropReason::NoImprovement);
    EXPECT_EQ(dropped.text, "no better than with fewer cores removed");
    EXPECT_EQ(dropped.derivation.find("remove("),
              dropped.derivation.rfind("remove("));
  }
  EXPECT_EQ(membersOf(*result, DropReason::NoImprovement),
            result->statistics.noImprovement);
  EXPECT_EQ(membersOf(*result) + result->statistics.noImprovement,
            evaluator.calls);
}

/// Two processes are better than one, and sleeping cores gain nothing.
TEST(ConfigurationSearch, FillsAShortRankingWithWhatGainedTooLittle) {
  TestEvaluator evaluator([](const ServiceConfiguration &configuration) {
    const double asleep = 8.0 - awake(configuration);
    return configuration.processes() > 2
               ? std::numeric_limits<double>::infinity()
               : 10.0 - static_cast<double>(configuration.processes()) + asleep;
  });
  ConfigurationSearchOptions options;
  auto few = searchConfigurations(makeFlat(8), evaluator, options);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->configurations.size(), 2U);
  options.leastClasses = 5;
  options.keepDropped = true;
  auto filled = searchConfigurations(makeFlat(8), evaluator, options);
  ASSERT_TRUE(filled);
  ASSERT_EQ(filled->configurations.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(filled->configurations, {},
                                     &ConfigurationClass::predictedMs));
  EXPECT_EQ(filled->configurations.front().processes(), 2U);
  EXPECT_EQ(awake(filled->configurations.front()), 8U);
  EXPECT_EQ(membersOf(*filled) + filled->statistics.noImprovement,
            membersOf(*few) + few->statistics.noImprovement);
  EXPECT_EQ(membersOf(*filled, DropReason::NoImprovement),
            filled->statistics.noImprovement);
  options.topK = 3;
  EXPECT_EQ(searchConfigurations(makeFlat(8), evaluator, options)
                ->configurations.size(),
            3U);
}

TEST(ConfigurationSearch, AppliesOperatorLimits) {
  ConfigurationSearchOptions options = exhaustive();
  options.limits.queryHeads = 32;
  options.keepDropped = true;
  TestEvaluator evaluator([](const ServiceConfiguration &configuration) {
    EXPECT_EQ(32 % configuration.processes(), 0u);
    return 1.0;
  });
  auto result = searchConfigurations(makeTree({{"numa", 2}, {"cpu", 12}}),
                                     evaluator, options);
  ASSERT_TRUE(result);
  std::set<size_t> refused;
  for (const DroppedClass &dropped : result->dropped)
    if (dropped.reason == DropReason::OperatorLimits) {
      EXPECT_TRUE(refused.insert(dropped.shape.processes).second);
      EXPECT_EQ(dropped.text, std::to_string(dropped.shape.processes) +
                                  " processes do not divide 32 query heads");
      EXPECT_EQ(dropped.shape.decodeCores, 24 / dropped.shape.processes);
      EXPECT_TRUE(std::isinf(dropped.predictedMs));
      EXPECT_FALSE(toJson(dropped).contains("predicted_ms"));
    }
  EXPECT_EQ(refused, (std::set<size_t>{6, 12, 24}));
  EXPECT_EQ(membersOf(*result, DropReason::OperatorLimits),
            result->statistics.refused);
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
  options.keepDropped = true;
  auto few = searchConfigurations(tree, evaluator, options);
  ASSERT_TRUE(few);
  ASSERT_EQ(few->configurations.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(few->configurations[i] == all->configurations[i]);
  const uint64_t below = membersOf(*few, DropReason::BelowTop);
  EXPECT_EQ(below, all->configurations.size() - 4);
  EXPECT_EQ(few->statistics.belowTop, below);
  EXPECT_EQ(4 + below + membersOf(*few, DropReason::NoImprovement),
            few->statistics.configurations);
  // All reasons together, the best first, and no better than what is kept.
  EXPECT_TRUE(
      std::ranges::is_sorted(few->dropped, {}, &DroppedClass::predictedMs));
  for (const DroppedClass &dropped : few->dropped)
    if (dropped.reason == DropReason::BelowTop) {
      EXPECT_GT(dropped.predictedMs, few->configurations[3].predictedMs);
      EXPECT_EQ(dropped.text, "4 configurations are better");
    }
  // Nothing is kept of them unless somebody asks.
  EXPECT_TRUE(all->dropped.empty());
  EXPECT_FALSE(toJson(*all).contains("dropped"));
  EXPECT_EQ(toJson(*few)["dropped"].size(), few->dropped.size());
}

// 12 equal cores in 2 or 3 processes: by neighbours, spread, or between.
TEST(ConfigurationSearch, RanksOneConfigurationOfEachClass) {
  TestEvaluator evaluator([](const ServiceConfiguration &configuration) {
    return 1000 + static_cast<double>(configuration.processes());
  });
  ConfigurationSearchOptions options = exhaustive();
  auto result = searchConfigurations(makeFlat(12), evaluator, options);
  ASSERT_TRUE(result);
  // 1, 2, 3, 4, 6 and 12 processes, all cores awake.
  ASSERT_EQ(result->configurations.size(), 6u);
  for (const ConfigurationClass &configuration : result->configurations) {
    EXPECT_EQ(configuration.shape().decodeCores,
              12 / configuration.processes());
    // A single process has nothing to differ by, nor has one for each core.
    const bool differ =
        configuration.processes() > 1 && configuration.processes() < 12;
    EXPECT_EQ(configuration.equal.count() > 0, differ);
    EXPECT_EQ(configuration.equal.differBy(), differ ? "stride" : "");
    // The simplest stands for all: one group, or none.
    EXPECT_EQ(std::ranges::count(configuration.derivation, '('), differ)
        << configuration.derivation;
  }
  EXPECT_EQ(membersOf(*result) + result->statistics.noImprovement,
            evaluator.calls);
  const Json two = toJson(result->configurations[1]);
  EXPECT_EQ(two["equal"], result->configurations[1].equal.count());
  EXPECT_EQ(two["equal_by"], "stride");
  EXPECT_FALSE(two.contains("limits"));
}

TEST(ConfigurationSearch, TopKCountsClasses) {
  TestEvaluator evaluator([](const ServiceConfiguration &configuration) {
    return 1000 + static_cast<double>(configuration.processes());
  });
  ConfigurationSearchOptions options = exhaustive();
  auto all = searchConfigurations(makeFlat(12), evaluator, options);
  options.topK = 5;
  options.keepDropped = true;
  auto five = searchConfigurations(makeFlat(12), evaluator, options);
  ASSERT_TRUE(all && five);
  ASSERT_EQ(five->configurations.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(five->configurations[i] == all->configurations[i]);
    EXPECT_EQ(five->configurations[i].equal.count(),
              all->configurations[i].equal.count());
  }
  EXPECT_EQ(five->statistics.belowTop, 1u);
  EXPECT_EQ(membersOf(*five, DropReason::BelowTop), 1u);
}

// Times that differ by rounding are equal, those that differ by more are not,
// and those of another shape are other plans.
TEST(ConfigurationSearch, RoundingMakesNoClasses) {
  uint64_t calls = 0;
  const auto search = [&](double apart) {
    TestEvaluator evaluator([&, apart](const ServiceConfiguration &) {
      return 1000 * (1 + apart * static_cast<double>(calls++ % 3));
    });
    auto result = searchConfigurations(makeFlat(12), evaluator, exhaustive());
    EXPECT_TRUE(result);
    return *result;
  };
  const SearchResult rounded = search(1e-13);
  ASSERT_EQ(rounded.configurations.size(), 6u);
  for (size_t i = 1; i < 6; ++i) {
    EXPECT_EQ(rounded.configurations[i].predictedMs,
              rounded.configurations[0].predictedMs);
    EXPECT_GT(rounded.configurations[i].processes(),
              rounded.configurations[i - 1].processes());
  }
  EXPECT_GT(search(1e-6).configurations.size(), 6u);

  EXPECT_TRUE(areEqualPredictions(1, 1 + 1e-10));
  EXPECT_FALSE(areEqualPredictions(1, 1 + 1e-8));
  EXPECT_TRUE(areEqualPredictions(0, 0));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(areEqualPredictions(infinity, infinity));
  EXPECT_FALSE(areEqualPredictions(1, infinity));
  EXPECT_FALSE(areEqualPredictions(infinity, 1));
}

// Two packages of two nodes: pairs of nodes are packages, or one node of each.
TEST(ConfigurationSearch, EqualOnesMayLieOnOtherNodes) {
  TestEvaluator evaluator([](const ServiceConfiguration &configuration) {
    return 1000 + static_cast<double>(configuration.processes());
  });
  auto result = searchConfigurations(makeTree({{"numa", 4}, {"cpu", 1}}),
                                     evaluator, exhaustive());
  ASSERT_TRUE(result);
  ASSERT_EQ(result->configurations.size(), 3u);
  const ConfigurationClass &two = result->configurations[1];
  ASSERT_EQ(two.processes(), 2u);
  EXPECT_EQ(two.numa, (std::vector<std::vector<unsigned>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(two.equal.byNodes, 1u);
  EXPECT_EQ(two.equal.byStride, 0u);
  EXPECT_EQ(two.equal.differBy(), "NUMA nodes");
  EqualConfigurations both{.byStride = 1, .byNodes = 2};
  EXPECT_EQ(both.count(), 3u);
  EXPECT_EQ(both.differBy(), "stride and NUMA nodes");
}

// Each class has all that have its shape, told apart by where its processes
// are, and the simplest of them stands for it.
TEST(ConfigurationSearch, ClassesCountAllOfTheirShape) {
  const TopoTree tree = makeTree({{"numa", 4}, {"cpu", 4}});
  auto simplicity = [](const ServiceConfiguration &configuration) {
    return std::ranges::count(configuration.derivation, '(');
  };
  // Awake in fewer cores is better in any case, and no two are equal.
  TestEvaluator different([](const ServiceConfiguration &configuration) {
    return static_cast<double>(awake(configuration)) +
           1e-9 * scattered(configuration);
  });
  auto each = searchConfigurations(tree, different, exhaustive());
  TestEvaluator evaluator(fewerIsBetter);
  auto classes = searchConfigurations(tree, evaluator, exhaustive());
  ASSERT_TRUE(each && classes);
  EXPECT_EQ(each->configurations.size(), different.calls);
  std::set<std::string_view> differences;
  for (const ConfigurationClass &one : classes->configurations) {
    uint64_t byStride = 0, byNodes = 0;
    for (const ConfigurationClass &other : each->configurations)
      if (other.shape() == one.shape()) {
        ++(other.numa == one.numa ? byStride : byNodes);
        EXPECT_GE(simplicity(other), simplicity(one))
            << one.derivation << ", " << other.derivation;
      }
    EXPECT_EQ(one.equal.byStride + 1, byStride) << one.derivation;
    EXPECT_EQ(one.equal.byNodes, byNodes) << one.derivation;
    differences.insert(one.equal.differBy());
  }
  EXPECT_EQ(differences, (std::set<std::string_view>{"", "stride", "NUMA nodes",
                                                     "stride and NUMA nodes"}));
}

TEST(ConfigurationSearch, TellsWhatLimitsConfigurations) {
  TestEvaluator evaluator(fewerIsBetter);
  std::set<Layout> explained;
  evaluator.explanation = [&](const ServiceConfiguration &configuration) {
    EXPECT_TRUE(explained.insert(layoutOf(configuration)).second);
    return PredictedTime{{{"computing", 3}, {"numa bandwidth", 2}},
                         {{"computing", 1}, {"barriers", 1}}};
  };
  ConfigurationSearchOptions options = exhaustive();
  options.topK = 2;
  options.keepDropped = true;
  auto result = searchConfigurations(makeFlat(8), evaluator, options);
  ASSERT_TRUE(result);
  // One of each class, of those that are dropped too.
  EXPECT_EQ(explained.size(),
            result->configurations.size() + result->dropped.size());
  EXPECT_EQ(limitOf(result->configurations[0].time.prefill), "computing");
  EXPECT_EQ(limitOf(result->dropped[0].time.decode), "barriers");
  EXPECT_EQ(limitOf({}), "");
  const Json json = toJson(result->configurations[0]);
  EXPECT_EQ(json["limits"].dump(),
            R"({"prefill":"computing","decode":"barriers"})");
  EXPECT_EQ(json["time_ms"]["prefill"]["numa bandwidth"], 2);
}

TEST(OncePerClass, AsksAboutOneOfThoseThatAModelTakesForEqual) {
  // The model sees the processes; what is measured also hears the noise.
  TestEvaluator model([](const ServiceConfiguration &configuration) {
    return 1 + 1e-12 * static_cast<double>(hash(configuration).high % 7) +
           static_cast<double>(configuration.processes());
  });
  std::map<ConfigurationShape, uint64_t> runs;
  TestEvaluator measured([&](const ServiceConfiguration &configuration) {
    ++runs[configuration.shape()];
    return 100 + scattered(configuration);
  });
  OncePerClass once(model, measured);
  auto result = searchConfigurations(makeFlat(12), once, exhaustive());
  ASSERT_TRUE(result) << result.error().message;
  for (const auto &[shape, count] : runs)
    EXPECT_EQ(count, 1u) << describe(shape);
  EXPECT_GT(once.spared(), 0u);
  EXPECT_EQ(model.calls, measured.calls + once.spared());
  EXPECT_EQ(result->statistics.configurations, model.calls);
  // What is equal to the model is one class of the ranking.
  EXPECT_EQ(membersOf(*result) + result->statistics.noImprovement, model.calls);
  EXPECT_LE(result->configurations.size(), runs.size());
}

TEST(OncePerClass, AsksAboutAllThatDiffer) {
  TestEvaluator model(scattered);
  TestEvaluator measured(fewerIsBetter);
  OncePerClass once(model, measured);
  ASSERT_TRUE(searchConfigurations(makeFlat(12), once, exhaustive()));
  EXPECT_EQ(once.spared(), 0u);
  EXPECT_EQ(measured.calls, model.calls);
}

TEST(OncePerClass, ErrorsAreThoseOfBoth) {
  class Failing : public ConfigurationEvaluator {
    Result<double> predict(const ServiceConfiguration &) override {
      return makeError("no such machine");
    }
  } failing;
  TestEvaluator working(fewerIsBetter);
  OncePerClass noModel(failing, working), noMeasurement(working, failing);
  for (OncePerClass *once : {&noModel, &noMeasurement}) {
    auto result = searchConfigurations(makeFlat(4), *once);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "no such machine");
  }
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
  ConfigurationSearchOptions options;
  options.keepDropped = true;
  auto result = searchConfigurations(makeFlat(4), evaluator, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->configurations.front().processes(), 4u);
  uint64_t cannotRun = 0;
  for (const DroppedClass &dropped : result->dropped) {
    if (dropped.reason != DropReason::CannotRun)
      continue;
    cannotRun += 1 + dropped.equal.count();
    EXPECT_EQ(dropped.text,
              std::to_string(dropped.shape.processes) + " are too few");
  }
  EXPECT_EQ(cannotRun, result->statistics.cannotRun);
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
  EXPECT_EQ(membersOf(*result), 20u);
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
  options.keepDropped = true;
  auto told = searchConfigurations(makeKunpeng(), all, options);
  ASSERT_TRUE(told);
  ASSERT_EQ(soFar.size(), all.calls - 1);
  options.soFar = nullptr;
  TestEvaluator again(fewerIsBetter);
  auto untold = searchConfigurations(makeKunpeng(), again, options);
  ASSERT_TRUE(untold);
  // Who is told meanwhile changes nothing.
  EXPECT_EQ(describe(*told), describe(*untold));
  options.keepDropped = false;
  for (const uint64_t calls : {1, 20, 2, 100}) {
    if (calls == 2 && test::isEmulated())
      break;
    TestEvaluator some(fewerIsBetter);
    options.interrupted = [&] { return some.calls == calls; };
    auto result = searchConfigurations(makeKunpeng(), some, options);
    ASSERT_TRUE(result);
    EXPECT_EQ(describe(*result), soFar[calls - 1]);
  }
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
    if (cores > 16384 && test::isEmulated())
      break;
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
