//===- RankGroupTest.cpp - The processes of one model ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/RankGroup.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include "sandwich/Runtime/Engine.h"
#include "sandwich/Support/ElapsedTime.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;
using namespace std::chrono_literals;

namespace {
using Clock = std::chrono::steady_clock;

class RankGroupTest : public ::testing::Test {
protected:
  Result<std::unique_ptr<Engine>> create(HashModelOptions model,
                                         EngineOptions options = {}) {
    if (model.ranks == 1)
      model.ranks = 2;
    const std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    if (options.ranks.program.empty())
      options.ranks.program = SANDWICH_TEST_RUN;
    return Engine::create(std::move(*artifact), options);
  }

  std::unique_ptr<Engine> load(const HashModelOptions &model = {},
                               const EngineOptions &options = {}) {
    Result<std::unique_ptr<Engine>> engine = create(model, options);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }

  /// The error of a step of `tokens`, or "".
  static std::string feed(Engine &engine, const std::vector<int32_t> &tokens) {
    Sequence sequence(engine);
    Status status = engine.feed(sequence, tokens, LogitRows::Last);
    return status ? "" : status.error().message;
  }

  static std::string nameOf(const Engine &engine, size_t rank) {
    return "rank " + std::to_string(rank) + " (process " +
           std::to_string(engine.rankProcesses()[rank - 1]) + ") ";
  }

  TemporaryFolder folder;
};

} // namespace

TEST_F(RankGroupTest, RanksHaveTheLogitsOfOneProcess) {
  for (uint32_t ranks : {2, 4}) {
    std::unique_ptr<Engine> engine = load({.ranks = ranks});
    ASSERT_TRUE(engine);
    const std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
    std::vector<float> logits;
    Sequence sequence(*engine);
    Status status = engine->feed(
        sequence, tokens, LogitRows::Last,
        [&](std::span<const float> row, uint64_t, uint64_t) -> Status {
          logits.assign(row.begin(), row.end());
          return {};
        });
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(logits, hashModelLogits(tokens));
  }
}

TEST_F(RankGroupTest, AThreadThatNeverEndsIsFound) {
  for (uint32_t ranks : {2, 4}) {
    std::unique_ptr<Engine> engine = load({.ranks = ranks});
    ASSERT_TRUE(engine);
    ASSERT_EQ(feed(*engine, {1, 2}), "");
    const Clock::time_point start = Clock::now();
    const std::string error = feed(*engine, {HASH_MODEL_LOOP, 1});
    EXPECT_TRUE(error.starts_with(nameOf(*engine, 1) + "hangs: it has computed "
                                                       "for "))
        << error;
    // Two seconds of its own; here it shares the cores with the others.
    EXPECT_LT(secondsSince(start), 8);
    // And so do later ones.
    EXPECT_EQ(feed(*engine, {1, 2}), error);
  }
}

TEST_F(RankGroupTest, ATeamThatWaitsForEverIsFound) {
  for (uint32_t ranks : {2, 4}) {
    std::unique_ptr<Engine> engine = load({.ranks = ranks});
    ASSERT_TRUE(engine);
    const Clock::time_point start = Clock::now();
    const std::string error = feed(*engine, {HASH_MODEL_LEAVE, 1});
    EXPECT_EQ(error, nameOf(*engine, 1) + "hangs: all its threads sleep while "
                                          "the other ranks wait for it");
    EXPECT_LT(secondsSince(start), 8);
  }
}

TEST_F(RankGroupTest, LongStepsAreNoHangs) {
  std::unique_ptr<Engine> engine = load();
  ASSERT_TRUE(engine);
  // Both ranks may take long, and one some times as long as the other.
  EXPECT_EQ(feed(*engine, {HASH_MODEL_WORK, 120, 1, 1}), "");
  EXPECT_EQ(feed(*engine, {HASH_MODEL_WORK, 20, 1, 6}), "");
  EXPECT_EQ(feed(*engine, {HASH_MODEL_WORK, 1, 30, 2}), "");
  // So may whoever asks for steps.
  std::this_thread::sleep_for(2s);
  EXPECT_EQ(feed(*engine, {1, 2}), "");
}

TEST_F(RankGroupTest, RankZeroTellsThatItHangs) {
  // Its step does not return; so this happens in a process of its own.
  EXPECT_EXIT(
      {
        EngineOptions options;
        options.ranks.onOwnHang = [](const Error &error) {
          std::fprintf(stderr, "%s\n", error.message.c_str());
          std::_Exit(7);
        };
        std::unique_ptr<Engine> engine = load({}, options);
        ::alarm(60);
        (void)feed(*engine, {HASH_MODEL_LOOP, 0});
      },
      testing::ExitedWithCode(7),
      "rank 0 \\(process [0-9]+\\) hangs: it has computed for ");
}

TEST_F(RankGroupTest, AFailureEndsALongStepAtItsNextCollective) {
  for (unsigned threads : {1, 2, 3}) {
    std::unique_ptr<Engine> engine = load({.threads = threads});
    ASSERT_TRUE(engine);
    std::future<std::string> error = std::async(std::launch::async, [&] {
      // It would take half a minute.
      return feed(*engine, {HASH_MODEL_WORK, 10, 250, 1});
    });
    std::this_thread::sleep_for(300ms);
    const Clock::time_point start = Clock::now();
    ::kill(engine->rankProcesses()[0], SIGKILL);
    EXPECT_EQ(error.get(),
              nameOf(*engine, 1) + "was killed by signal 9 (SIGKILL)");
    EXPECT_LT(secondsSince(start), 4);
  }
}

TEST_F(RankGroupTest, AFailureStopsLoading) {
  // A shard of 48 MiB, which is some pieces.
  int calls = 0;
  EngineOptions options;
  options.ranks.program = folder.write("fails", "#!/bin/sh\nsleep 1\nexit 1\n");
  ASSERT_EQ(::chmod(options.ranks.program.c_str(), 0700), 0);
  options.progress = [&](uint64_t, uint64_t) {
    if (++calls == 1)
      std::this_thread::sleep_for(2s);
  };
  Result<std::unique_ptr<Engine>> engine =
      create({.threads = 1, .shardRegions = 24}, options);
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.ends_with(") ended with exit status 1"))
      << engine.error().message;
  EXPECT_EQ(calls, 1);
}

TEST_F(RankGroupTest, AnotherBuildIsOneClearError) {
  EngineOptions options;
  options.ranks.program = folder.write("other", "#!/bin/sh\nexit 125\n");
  ASSERT_EQ(::chmod(options.ranks.program.c_str(), 0700), 0);
  Result<std::unique_ptr<Engine>> engine = create({}, options);
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.ends_with(
      ") is of another build of Sandwich than this program; SANDWICH_RUN may "
      "name the sandwich-run that belongs to it"))
      << engine.error().message;
  // That is what sandwich-run does if it finds one.
  auto segment = *SharedMemorySegment::create(2, 1);
  ASSERT_EQ(::pwrite(segment->descriptor(), "0.0.0", 5, /*after the magic*/ 8),
            5);
  EXPECT_EXIT((void)serveRank(segment->descriptor(), 1, "none"),
              testing::ExitedWithCode(otherBuildStatus), "");
}

TEST_F(RankGroupTest, WarningsOfAllRanksAreTold) {
  // hwloc sees two NUMA nodes, the second one of which is not there.
  if (::access("/sys/devices/system/node/node1", F_OK) == 0)
    GTEST_SKIP() << "this machine has another node";
  std::vector<std::string> warnings;
  EngineOptions options;
  options.log = [&](LogLevel level, const std::string &message) {
    if (level == LogLevel::Warning)
      warnings.push_back(message);
  };
  ::setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
  ::setenv("HWLOC_THISSYSTEM", "1", 1);
  std::unique_ptr<Engine> engine = load({.threads = 1}, options);
  std::vector<std::string> bound = std::move(warnings);
  warnings.clear();
  // All ranks are bound to the node that was asked for.
  options.numaNode = 1;
  std::unique_ptr<Engine> both = load({.threads = 1}, options);
  ::unsetenv("HWLOC_SYNTHETIC");
  ::unsetenv("HWLOC_THISSYSTEM");
  ASSERT_TRUE(engine && both);
  const std::string refusal = "cannot bind memory to NUMA node 1: ";
  EXPECT_EQ(std::ranges::count_if(bound,
                                  [&](const std::string &warning) {
                                    return warning.starts_with("rank 1: " +
                                                               refusal);
                                  }),
            1)
      << testing::PrintToString(bound);
  // What all say is told once.
  EXPECT_EQ(std::ranges::count_if(warnings,
                                  [&](const std::string &warning) {
                                    return warning.find(refusal) !=
                                           std::string::npos;
                                  }),
            1)
      << testing::PrintToString(warnings);
}
