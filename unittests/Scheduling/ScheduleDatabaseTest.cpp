//===- ScheduleDatabaseTest.cpp - What tuning found ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleDatabase.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/Strategies.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace sandwich;
namespace fs = std::filesystem;

namespace {

constexpr MatrixISA isa = MatrixISA::X86_AVX512_BF16;

class ScheduleDatabaseTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "schedules-XXXXXX");
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    path = folder / "tuned.schedules";
  }
  void TearDown() override { fs::remove_all(folder); }

  /// A database of `groups` tuned groups.
  ScheduleDatabase makeDatabase(int64_t groups, int64_t maxRows = 40) {
    ScheduleDatabase database;
    for (int64_t i = 0; i < groups; ++i) {
      TuningGroup group = makeGroup(i);
      MeasuringSession session(model);
      std::unique_ptr<SearchStrategy> strategy =
          makeStrategy(Strategy::Sandwich);
      Result<TunedGroup> tuned = tuneGroup(group, allRows(maxRows), *strategy,
                                           menu, model, session, {});
      EXPECT_TRUE(tuned);
      database.insert(ScheduleKey::of(group, target, isa),
                      TunedSchedules::of(*tuned));
    }
    return database;
  }

  TuningGroup makeGroup(int64_t number) {
    return {{.n = 1024 * (number + 1),
             .k = 2048,
             .columnUnit = 1,
             .bf16Weights = true,
             .packing = {}},
            2};
  }

  std::string read() {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string &text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  std::string loadError() {
    Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
    if (loaded)
      return "";
    std::string message = loaded.error().message;
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    return message.substr(std::min(message.size(), path.string().size() + 2));
  }

  fs::path folder, path;
  Target target = *getTarget("x86-64-avx512-bf16");
  CostModel model{CostModelParameters::forTarget(target)};
  std::vector<MicroKernel> menu = microKernelMenu(isa);
};

void expectEqual(const TunedSchedules &a, const TunedSchedules &b) {
  EXPECT_EQ(a.complete, b.complete);
  EXPECT_EQ(a.measurements, b.measurements);
  ASSERT_EQ(a.table.size(), b.table.size());
  for (size_t i = 0; i < a.table.size(); ++i) {
    EXPECT_EQ(a.table[i].maxRows, b.table[i].maxRows);
    EXPECT_EQ(a.table[i].schedule, b.table[i].schedule);
  }
}

TEST_F(ScheduleDatabaseTest, LoadsWhatItSaved) {
  ScheduleDatabase database = makeDatabase(3);
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->size(), 3u);
  for (const auto &[key, tuned] : database.all()) {
    const TunedSchedules *found = loaded->find(key);
    ASSERT_NE(found, nullptr);
    expectEqual(*found, tuned);
  }
  ASSERT_TRUE(ScheduleDatabase().save(path));
  EXPECT_EQ(ScheduleDatabase::load(path)->size(), 0u);
}

TEST_F(ScheduleDatabaseTest, EveryPartOfTheKeyMatters) {
  ScheduleDatabase database = makeDatabase(1, 4);
  ScheduleKey key = ScheduleKey::of(makeGroup(0), target, isa);
  EXPECT_NE(database.find(key), nullptr);
  auto changed = [&](auto change) {
    ScheduleKey other = key;
    change(other);
    return database.find(other) == nullptr;
  };
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.compilerVersion = "0.0.9"; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.cpuFeatures = "+avx2"; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.l1DataBytes += 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.l2Bytes += 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.threads = 3; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.bf16Weights = false; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.n = 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.k = 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.columnUnit = 2; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.packing.panel = 64; }));
}

TEST_F(ScheduleDatabaseTest, MergesTheMoreCompleteTable) {
  ScheduleDatabase few = makeDatabase(1, 8), many = makeDatabase(2, 40);
  ScheduleKey key = ScheduleKey::of(makeGroup(0), target, isa);
  ScheduleDatabase merged = few;
  merged.merge(many);
  EXPECT_EQ(merged.size(), 2u);
  expectEqual(*merged.find(key), *many.find(key));
  merged = many;
  merged.merge(few);
  expectEqual(*merged.find(key), *many.find(key));
  TunedSchedules partial = *many.find(key);
  partial.complete = false;
  merged.insert(key, partial);
  merged.merge(few);
  expectEqual(*merged.find(key), *few.find(key));
}

/// What was saved is what tuning goes on from.
TEST_F(ScheduleDatabaseTest, ChoicesServeARestart) {
  ScheduleDatabase database = makeDatabase(1);
  TuningGroup group = makeGroup(0);
  std::vector<Choice> known =
      database.find(ScheduleKey::of(group, target, isa))->choices();
  EXPECT_FALSE(known.empty());
  std::unique_ptr<SearchStrategy> strategy = makeStrategy(Strategy::Sandwich);
  MeasuringSession session(model);
  Result<TunedGroup> tuned =
      tuneGroup(group, allRows(40), *strategy, menu, model, session, {}, known);
  ASSERT_TRUE(tuned);
  EXPECT_LT(session.measurements(), 200);
}

TEST_F(ScheduleDatabaseTest, RefusesForeignFiles) {
  EXPECT_EQ(loadError(), "cannot open: No such file or directory");
  write("");
  EXPECT_EQ(loadError(), "is no schedule database: format is '', not "
                         "'sandwich schedules'");
  write("hello: 1\n");
  EXPECT_EQ(loadError(),
            "is no schedule database: line 1: Message type "
            "\"sandwich.schedules.Database\" has no field named \"hello\".");
  write("format: \"sandwich schedules\"\nformat_version: 2\n");
  EXPECT_EQ(loadError(),
            "format_version is 2; this version of Sandwich reads 1");
  write(std::string("\x7f"
                    "ELF\0\0",
                    6));
  EXPECT_TRUE(loadError().starts_with("is no schedule database: line 1: "));
}

/// Cut anywhere, or changed at any place, a file is refused, or is still the
/// same (a space, a comment).
TEST_F(ScheduleDatabaseTest, RefusesDamagedFiles) {
  ScheduleDatabase database = makeDatabase(2, 12);
  ASSERT_TRUE(database.save(path));
  std::string text = read();
  std::mt19937 random(5);
  size_t refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = text;
    size_t at = random() % text.size();
    if (i % 2)
      damaged.resize(at);
    else
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    write(damaged);
    Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
    if (!loaded) {
      EXPECT_FALSE(loadError().empty());
      ++refused;
      continue;
    }
    ASSERT_EQ(loaded->size(), database.size());
    for (const auto &[key, tuned] : database.all()) {
      ASSERT_NE(loaded->find(key), nullptr);
      expectEqual(*loaded->find(key), tuned);
    }
  }
  EXPECT_GT(refused, 300u);
}

/// Files with a right checksum whose contents cannot be used.
TEST_F(ScheduleDatabaseTest, RefusesSchedulesThatCannotRun) {
  auto errorWith = [&](auto change) {
    ScheduleDatabase database = makeDatabase(1, 4);
    ScheduleKey key = database.all().begin()->first;
    TunedSchedules tuned = database.all().begin()->second;
    change(key, tuned);
    ScheduleDatabase changed;
    changed.insert(key, tuned);
    EXPECT_TRUE(changed.save(path));
    return loadError();
  };
  auto schedule = [](TunedSchedules &tuned) -> Schedule & {
    return tuned.table.front().schedule;
  };
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              schedule(tuned).microKernel = {isa, 40, 32};
            }),
            "line 5: groups[0]: ranges[0]: X86_AVX512_BF16_40x32 needs 83 "
            "registers, X86_AVX512_BF16 has 32");
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              schedule(tuned).microKernel.isa = MatrixISA::X86_AMX_BF16;
              schedule(tuned).microKernel.rows = 16;
              schedule(tuned).microKernel.columns = 32;
            }),
            "line 5: groups[0]: ranges[0]: X86_AMX_BF16_16x32 does not read "
            "panels of 32 columns, 32 in a tile, with 2 by 2 k together");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &tuned) {
              schedule(tuned).threads = {1, key.threads + 1, 1};
            }),
            "line 5: groups[0]: ranges[0]: its thread grid needs 3 threads, "
            "the group has 2");
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              tuned.table.back().maxRows = 7;
            }).substr(0, 21),
            "line 5: groups[0]: ra");
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              tuned.measurements = {{2, 1.0}, {2, 1.0}};
            }),
            "line 5: groups[0]: measurements ascend in rows and have positive "
            "seconds; one is of 2 rows and 1 s");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &) { key.n = 0; }),
            "line 5: groups[0].key: n is 0, not between 1 and 1099511627776");
}

TEST_F(ScheduleDatabaseTest, EditedFilesAreRefused) {
  ASSERT_TRUE(makeDatabase(1, 4).save(path));
  std::string text = read();
  size_t at = text.find("threads: 2");
  ASSERT_NE(at, text.npos);
  text[at + 9] = '4';
  write(text);
  EXPECT_EQ(loadError(),
            "checksum does not match: the file is damaged, or was edited");
}

/// A child saves one of two databases after the other until it is killed, at a
/// random moment after its first save.
TEST_F(ScheduleDatabaseTest, SurvivesBeingKilled) {
  ScheduleDatabase small = makeDatabase(1, 8), large = makeDatabase(4, 24);
  ASSERT_TRUE(small.save(path));
  std::mt19937 random(9);
  for (int i = 0; i < 30; ++i) {
    int saved[2];
    ASSERT_EQ(::pipe(saved), 0);
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      for (bool which = i % 2;; which = !which)
        if (!(which ? large : small).save(path) ||
            ::write(saved[1], "", 1) != 1)
          ::_exit(1);
    ::close(saved[1]);
    char byte;
    ASSERT_EQ(::read(saved[0], &byte, 1), 1) << "the child could not save";
    ::usleep(random() % 12000);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::close(saved[0]);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_TRUE(loaded->size() == small.size() ||
                loaded->size() == large.size());
  }
}

/// What a killed program left beside the file goes with the next save, what a
/// running one writes stays.
TEST_F(ScheduleDatabaseTest, ClearsWhatWasAbandoned) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  fs::path abandoned = path.string() + ".partial-" + std::to_string(child);
  fs::path used = path.string() + ".partial-" + std::to_string(::getppid());
  fs::path other = path.string() + ".partial-notes";
  for (const fs::path &file : {abandoned, used, other})
    std::ofstream(file) << "half";
  ASSERT_TRUE(ScheduleDatabase().save(path));
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(used));
  EXPECT_TRUE(fs::exists(other));
}

} // namespace
