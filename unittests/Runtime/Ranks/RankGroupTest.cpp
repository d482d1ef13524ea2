//===- RankGroupTest.cpp - The processes of one model ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Ranks/RankGroup.h"

#include "Inputs/hash_model.h"
#include "RankGroupFixture.h"

#include "sandwich/Support/ElapsedTime.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_F(RankGroupTest, RanksHaveTheLogitsOfOneProcess) {
  for (uint32_t ranks : {2, 4})
    for (Collectives collectives : allCollectives()) {
      EngineOptions options;
      options.ranks.collectives = collectives;
      std::unique_ptr<Engine> engine = load({.ranks = ranks}, options);
      ASSERT_TRUE(engine);
      const std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
      std::vector<float> logits;
      Sequence sequence = engine->newSequence();
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

/// What `process` has open, by number.
static std::map<int, std::string> openFiles(int process) {
  namespace fs = std::filesystem;
  std::map<int, std::string> files;
  std::error_code closed;
  for (const fs::directory_entry &entry : fs::directory_iterator(
           "/proc/" + std::to_string(process) + "/fd", closed))
    files[std::stoi(entry.path().filename())] =
        fs::read_symlink(entry.path(), closed).string();
  return files;
}

TEST_F(RankGroupTest, RanksGetTheFilesThatAreForThem) {
  // Both around the descriptor of the memory that ranks share.
  std::array<int, 2> before{}, after{};
  ASSERT_EQ(::pipe(before.data()), 0);
  const int file = ::open("/proc/version", O_RDONLY);
  ASSERT_GE(::fcntl(file, F_DUPFD, 100), 100);
  std::unique_ptr<Engine> engine = load();
  ASSERT_TRUE(engine);
  ASSERT_EQ(::pipe(after.data()), 0);
  const std::map<int, std::string> own = openFiles(::getpid());
  for (int process : engine->rankProcesses())
    for (const auto &[number, name] : openFiles(process)) {
      const bool standard = number <= STDERR_FILENO && name == own.at(number);
      // What ranks share, the code, and what a rank opens for itself.
      const bool meant = name.starts_with("/memfd:sandwich-ranks") ||
                         name.starts_with("/memfd:phases.so") ||
                         name.starts_with("anon_inode:") ||
                         name.starts_with(folder.file("model.sandwich"));
      EXPECT_TRUE(standard || meant) << number << " is " << name;
    }
  for (int each : {before[0], before[1], after[0], after[1], file, 100})
    ::close(each);
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

TEST_F(RankGroupTest, TextsMayComeToAnyTokens) {
  // Only what begins a text makes the ranks of the tests hang.
  std::unique_ptr<Engine> engine = load({.ranks = 2});
  ASSERT_TRUE(engine);
  for (const int32_t token : {HASH_MODEL_LOOP, HASH_MODEL_LEAVE}) {
    const std::vector<int32_t> prompt = {1}, next = {token}, rank = {0};
    Sequence one = engine->newSequence(), other = engine->newSequence();
    ASSERT_TRUE(engine->feed(one, prompt, LogitRows::None));
    ASSERT_TRUE(engine->feed(other, prompt, LogitRows::None));
    const std::array<Segment, 2> segments = {
        {{&one, next, LogitRows::Last}, {&other, rank, LogitRows::Last}}};
    const Result<StepResult> result = engine->step(segments, PhaseKind::Decode);
    ASSERT_TRUE(result) << result.error().message;
    const std::vector<float> expected =
        hashModelLogits(std::vector<int32_t>{1, token});
    EXPECT_TRUE(
        std::ranges::equal(result->logits.first(expected.size()), expected));
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

TEST_F(RankGroupTest, HowLongAHangTakesIsToBeSaid) {
  for (double seconds : {0.0, -1.0, 0.29, 1e9, std::nan("")}) {
    EngineOptions options;
    options.ranks.hangSeconds = seconds;
    Result<std::unique_ptr<Engine>> engine = create({}, options);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().kind, ErrorKind::InvalidArgument);
    EXPECT_TRUE(engine.error().message.starts_with(
        "ranks that hang are to be found after "))
        << engine.error().message;
  }
}

TEST_F(RankGroupTest, AStoppedRankIsFoundNoEarlierThanAskedFor) {
  for (double seconds : {0.5, 2.5}) {
    EngineOptions options;
    options.ranks.hangSeconds = seconds;
    std::unique_ptr<Engine> engine = load({}, options);
    ASSERT_TRUE(engine);
    ASSERT_EQ(feed(*engine, {1, 2}), "");
    const Clock::time_point start = Clock::now();
    ASSERT_EQ(::kill(engine->rankProcesses()[0], SIGSTOP), 0);
    EXPECT_EQ(feed(*engine, {1, 2}),
              nameOf(*engine, 1) + "does not answer any more");
    // Its last beat was at most a beat before.
    EXPECT_GT(secondsSince(start), seconds - 0.3);
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
