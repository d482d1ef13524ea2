//===- ScheduleDatabaseTest.cpp - What tuning found ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleDatabase.h"

#include "Emulation.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/Strategies.h"
#include "sandwich/Scheduling/schedules.pb.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <random>
#include <ranges>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

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
      database.insert(keyOf(i), TunedSchedules::of(*tuned));
    }
    return database;
  }

  ScheduleKey keyOf(int64_t number, Strategy strategy = Strategy::Sandwich) {
    return ScheduleKey::of(makeGroup(number), target, isa, strategy);
  }

  TuningGroup makeGroup(int64_t number) {
    return {{.n = 1024 * (number + 1),
             .k = 2048,
             .columnUnit = 1,
             .storage = StorageFormat::bf16(),
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
  CostModel model{CostModelParameters::of(target, 2)};
  std::vector<MicroKernel> menu = microKernelMenu(isa);
};

void expectEqual(const TunedSchedules &a, const TunedSchedules &b) {
  EXPECT_EQ(a.complete, b.complete);
  EXPECT_EQ(a.traces, b.traces);
  EXPECT_EQ(a.cpuModel, b.cpuModel);
  ASSERT_EQ(a.choices.size(), b.choices.size());
  for (size_t i = 0; i < a.choices.size(); ++i) {
    EXPECT_EQ(a.choices[i].rows, b.choices[i].rows);
    EXPECT_EQ(a.choices[i].seconds, b.choices[i].seconds);
    EXPECT_EQ(a.choices[i].measured, b.choices[i].measured);
  }
  MatmulShape shape{.n = 2048,
                    .k = 2048,
                    .storage = StorageFormat::bf16(),
                    .packing = packingOf(isa)};
  ScheduleTable left = makeTable(shape, 2, a.choices),
                right = makeTable(shape, 2, b.choices);
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].maxRows, right[i].maxRows);
    EXPECT_EQ(left[i].schedule, right[i].schedule);
  }
}

/// Choices of `rows`, all of one schedule that the rule does not know.
TunedSchedules tunedFor(const std::vector<int64_t> &rows, double seconds = 1,
                        bool measured = true) {
  TunedSchedules tuned;
  Schedule schedule{
      .microKernel = {isa, 4, 32}, .slice = {4, 64, 512}, .threads = {1, 2, 1}};
  for (int64_t row : rows)
    tuned.choices.push_back({row, schedule, seconds, measured});
  return tuned;
}

std::vector<int64_t> rowsOf(const TunedSchedules &tuned) {
  std::vector<int64_t> rows;
  for (const Choice &choice : tuned.choices)
    rows.push_back(choice.rows);
  return rows;
}

TEST_F(ScheduleDatabaseTest, LoadsWhatItSaved) {
  ScheduleDatabase database = makeDatabase(3);
  TunedSchedules partial = database.all().begin()->second;
  partial.complete = false;
  partial.traces = {"b", "a"};
  partial.choices[5].measured = false;
  database.insert(database.all().begin()->first, partial);
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
  ScheduleKey key = keyOf(0);
  EXPECT_NE(database.find(key), nullptr);
  auto changed = [&](auto change) {
    ScheduleKey other = key;
    change(other);
    return database.find(other) == nullptr;
  };
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.compilerVersion = "0.0.9"; }));
  EXPECT_TRUE(
      changed([](ScheduleKey &k) { k.strategy = Strategy::ScaleUpAndOut; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.machine.cpuFeatures = "+avx2"; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.machine.l1DataBytes += 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.machine.l2Bytes += 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.machine.l3Bytes += 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.targetFeatures = "+avx2"; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.threads = 3; }));
  EXPECT_TRUE(
      changed([](ScheduleKey &k) { k.storage = StorageFormat::f32(); }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.n = 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.k = 1; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.columnUnit = 2; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.packing.panel = 64; }));
  EXPECT_TRUE(
      changed([](ScheduleKey &k) { k.epilogue.kind = Epilogue::AddResidual; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.epilogue.bias = true; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.epilogue.feedsMatmuls = true; }));
  EXPECT_TRUE(
      changed([](ScheduleKey &k) { k.epilogue.contiguousResult = true; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.epilogue.cacheHeads = 1; }));
  EXPECT_TRUE(changed(
      [](ScheduleKey &k) { k.epilogue.cache = AttentionElement::BF16; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.epilogue.headNorms = true; }));
  EXPECT_TRUE(changed([](ScheduleKey &k) { k.roundsInput = true; }));
}

namespace {

/// A group of a weight of integers, and what was tuned for it by `kernel`.
TuningGroup makeQuantizedGroup(bool roundsInput) {
  return {{.n = 1024,
           .k = 2048,
           .storage = *StorageFormat::parseOption("int4"),
           .roundsInput = roundsInput},
          2};
}

TunedSchedules tunedBy(const MicroKernel &kernel, const TuningGroup &group) {
  Schedule schedule{.microKernel = kernel,
                    .slice = {kernel.rows, 32, 2048},
                    .threads = {1, 2, 1}};
  TunedSchedules tuned;
  tuned.choices.push_back(
      {kernel.rows, completeByRule(schedule, group.shape, 1), 1, true});
  return tuned;
}

} // namespace

/// What rounds its input and what does not are never taken for each other.
TEST_F(ScheduleDatabaseTest, RoundedInputsAreOthers) {
  const MicroKernel integers{MatrixISA::X86_AVX512_VNNI, 4, 32};
  const MicroKernel floats{isa, 4, 32};
  ScheduleDatabase database;
  for (bool rounds : {true, false}) {
    const TuningGroup group = makeQuantizedGroup(rounds);
    const MicroKernel &kernel = rounds ? integers : floats;
    const ScheduleKey key =
        ScheduleKey::of(group, target, kernel.isa, Strategy::Sandwich);
    EXPECT_EQ(key.packing, integerPacking(32));
    EXPECT_EQ(key.shape().roundsInput, rounds);
    database.insert(key, tunedBy(kernel, group));
    EXPECT_FALSE(
        database.findTuned(makeQuantizedGroup(!rounds), target, kernel.isa) &&
        rounds);
  }
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->size(), 2u);
  for (bool rounds : {true, false}) {
    const MicroKernel &kernel = rounds ? integers : floats;
    auto found =
        loaded->findTuned(makeQuantizedGroup(rounds), target, kernel.isa);
    ASSERT_TRUE(found);
    EXPECT_EQ(
        found->second.choices.front().schedule,
        tunedBy(kernel, makeQuantizedGroup(rounds)).choices.front().schedule);
    auto served = servedTable(found->first, found->second, target);
    ASSERT_TRUE(served) << served.error().message;
    for (const ScheduleTableEntry &entry : *served)
      EXPECT_EQ(multipliesIntegers(entry.schedule.microKernel.isa), rounds);
  }
  // Weights of floats are multiplied the same either way.
  TuningGroup group = makeGroup(0);
  group.shape.roundsInput = true;
  EXPECT_EQ(ScheduleKey::of(group, target, isa, Strategy::Sandwich), keyOf(0));
}

/// A file of version 3, which knew nothing of rounding.
TEST_F(ScheduleDatabaseTest, ReadsOlderFiles) {
  ScheduleDatabase database = makeDatabase(1, 4);
  ASSERT_TRUE(database.save(path));
  schedules::Database message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(read(), &message));
  EXPECT_EQ(message.format_version(), 5u);
  for (uint32_t version : {2, 3}) {
    message.set_format_version(version);
    message.clear_checksum();
    std::string text;
    google::protobuf::TextFormat::PrintToString(message, &text);
    EXPECT_EQ(text.find("rounds_input"), text.npos);
    message.set_checksum(XXH3_64bits(text.data(), text.size()));
    google::protobuf::TextFormat::PrintToString(message, &text);
    write(text);
    Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_NE(loaded->find(keyOf(0)), nullptr);
    expectEqual(*loaded->find(keyOf(0)), *database.find(keyOf(0)));
  }
}

/// Keys differ in their epilogues alone, and files keep all of each.
TEST_F(ScheduleDatabaseTest, KeepsEpilogues) {
  std::vector<MatmulEpilogue> epilogues;
  for (Epilogue kind :
       {Epilogue::None, Epilogue::AddResidual, Epilogue::SiluMul,
        Epilogue::GeluExact, Epilogue::GeluTanh})
    for (bool bias : {false, true})
      epilogues.push_back({.kind = kind,
                           .bias = bias,
                           .feedsMatmuls = !bias,
                           .contiguousResult = bias});
  for (AttentionElement cache : {AttentionElement::F32, AttentionElement::BF16,
                                 AttentionElement::F16, AttentionElement::Int8})
    for (bool headNorms : {false, true})
      epilogues.push_back({.kind = Epilogue::RotateAppendKV,
                           .cacheHeads = 7,
                           .cache = cache,
                           .headNorms = headNorms});
  TuningGroup group = makeGroup(0);
  group.shape.columnUnit = 64;
  auto keyWith = [&](const MatmulEpilogue &epilogue) {
    group.shape.epilogue = epilogue;
    return ScheduleKey::of(group, target, isa, Strategy::Sandwich);
  };
  ScheduleDatabase database;
  for (size_t i = 0; i < epilogues.size(); ++i)
    database.insert(keyWith(epilogues[i]),
                    tunedFor({1}, 1 + static_cast<double>(i)));
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->size(), epilogues.size());
  for (size_t i = 0; i < epilogues.size(); ++i) {
    const ScheduleKey key = keyWith(epilogues[i]);
    const TunedSchedules *found = loaded->find(key);
    ASSERT_NE(found, nullptr) << name(epilogues[i].kind);
    EXPECT_EQ(found->choices.front().seconds, 1 + static_cast<double>(i));
    EXPECT_EQ(key.shape().epilogue, epilogues[i]);
  }
}

/// Whatever code is compiled for, the machine that measured is this one.
TEST_F(ScheduleDatabaseTest, TheKeyDescribesThisMachine) {
  for (const char *name : {"x86-64-avx2", "x86-64-avx512", "aarch64-neon"}) {
    Target other = *getTarget(name);
    ScheduleKey key =
        ScheduleKey::of(makeGroup(0), other, isa, Strategy::Sandwich);
    const CacheSizes &caches = CacheSizes::host();
    EXPECT_EQ(key.machine.l1DataBytes, int64_t(caches.level1Data));
    EXPECT_EQ(key.machine.l2Bytes, int64_t(caches.level2));
    EXPECT_EQ(key.machine.l3Bytes, int64_t(caches.level3));
    for (std::string_view feature : CpuFeatures::host().names())
      EXPECT_NE(key.machine.cpuFeatures.find(feature), std::string::npos);
    EXPECT_EQ(key.targetFeatures, other.featureString());
  }
}

/// Every field of a schedule, none with its default.
TEST_F(ScheduleDatabaseTest, KeepsAllOfASchedule) {
  const MatrixISA tiles = MatrixISA::X86_AMX_BF16;
  TuningGroup group = makeGroup(0);
  group.shape.packing = packingOf(tiles);
  const ScheduleKey key = ScheduleKey::of(group, *getTarget("x86-64-amx"),
                                          tiles, Strategy::Sandwich);
  const Schedule schedule{.microKernel = {tiles, 32, 32},
                          .slice = {64, 64, 512},
                          .threads = {1, 2, 1},
                          .prefetchLines = 3,
                          .order = LoopOrder::ColumnsOuter,
                          .prefetchStreams = 4,
                          .prefetchHint = PrefetchHint::NonTemporal,
                          .stores = StoreKind::NonTemporal,
                          .chunkK = 96,
                          .packsInput = true,
                          .streamed = StreamedOperands::Weight};
  TunedSchedules tuned;
  tuned.choices.push_back({64, schedule, 1, true});
  ScheduleDatabase database;
  database.insert(key, tuned);
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_NE(loaded->find(key), nullptr);
  EXPECT_EQ(loaded->find(key)->choices.front().schedule, schedule);
}

/// What only integers have.
TEST_F(ScheduleDatabaseTest, KeepsLongerGroups) {
  const MatrixISA integers = MatrixISA::X86_AVX512_VNNI;
  TuningGroup group = makeGroup(0);
  group.shape.storage = *StorageFormat::parse("int4-g32-f16");
  group.shape.roundsInput = true;
  group.shape.packing = packingOf(integers, group.shape.storage);
  const ScheduleKey key = ScheduleKey::of(
      group, *getTarget("x86-64-avx512-vnni"), integers, Strategy::Sandwich);
  const Schedule schedule{.microKernel = {integers, 6, 32},
                          .slice = {64, 32, 2048},
                          .threads = {1, 2, 1},
                          .prefetchLines = 1,
                          .prefetchHint = PrefetchHint::L2,
                          .chunkK = 512,
                          .packsInput = true,
                          .groupK = 128};
  TunedSchedules tuned;
  tuned.choices.push_back({64, schedule, 1, true});
  ScheduleDatabase database;
  database.insert(key, tuned);
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_NE(loaded->find(key), nullptr);
  EXPECT_EQ(loaded->find(key)->choices.front().schedule, schedule);
}

/// What only tiles of bf16 have; of a slice that is not all of K they do not.
TEST_F(ScheduleDatabaseTest, KeepsCopiesAhead) {
  const MatrixISA tiles = MatrixISA::X86_AMX_BF16;
  TuningGroup group = makeGroup(0);
  group.shape.storage = *StorageFormat::parse("int8-g32-f16");
  group.shape.packing = packingOf(tiles, group.shape.storage);
  const ScheduleKey key = ScheduleKey::of(group, *getTarget("x86-64-amx"),
                                          tiles, Strategy::Sandwich);
  Schedule schedule{.microKernel = {tiles, 32, 32},
                    .slice = {64, 32, 2048},
                    .threads = {1, 2, 1},
                    .chunkK = 512,
                    .copiesAhead = true};
  auto load = [&] {
    TunedSchedules tuned;
    tuned.choices.push_back({64, schedule, 1, true});
    ScheduleDatabase database;
    database.insert(key, tuned);
    EXPECT_TRUE(database.save(path));
    return ScheduleDatabase::load(path);
  };
  Result<ScheduleDatabase> loaded = load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_NE(loaded->find(key), nullptr);
  EXPECT_EQ(loaded->find(key)->choices.front().schedule, schedule);
  schedule.slice[2] = 1024;
  loaded = load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("are unpacked ahead"),
            std::string::npos)
      << loaded.error().message;
}

TEST_F(ScheduleDatabaseTest, TheVersionNamesTheSources) {
  std::string version(scheduleVersion());
  size_t dash = version.find('-');
  ASSERT_NE(dash, version.npos) << version;
  EXPECT_EQ(version.size() - dash - 1, 12u) << version;
  EXPECT_EQ(version.find_first_not_of("0123456789abcdef", dash + 1),
            version.npos)
      << version;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

TEST_F(ScheduleDatabaseTest, MergingLosesNoRows) {
  TunedSchedules quick = tunedFor({1, 2, 4, 8, 16}), part = tunedFor({1, 2, 3});
  quick.complete = true;
  quick.traces = {"a"};
  part.traces = {"b"};
  TunedSchedules both = quick;
  both.add(part);
  EXPECT_EQ(rowsOf(both), (std::vector<int64_t>{1, 2, 3, 4, 8, 16}));
  EXPECT_TRUE(both.complete);
  EXPECT_EQ(both.traces, (std::set<std::string>{"a", "b"}));
  part.add(quick);
  expectEqual(part, both);

  // Of more rows than any complete run, nothing is known.
  TunedSchedules beyond = tunedFor({1, 20});
  both.add(beyond);
  EXPECT_EQ(both.choices.back().rows, 20);
  EXPECT_FALSE(both.complete);
  beyond.complete = true;
  both.add(beyond);
  EXPECT_TRUE(both.complete);
}

TEST_F(ScheduleDatabaseTest, WhatWasMeasuredReplacesWhatWasDerived) {
  TunedSchedules derived = tunedFor({1, 2}, 1, false),
                 measured = tunedFor({2, 3}, 5);
  TunedSchedules both = derived;
  both.add(measured);
  measured.add(derived);
  for (const TunedSchedules &merged : {both, measured}) {
    ASSERT_EQ(rowsOf(merged), (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(merged.choices[1].seconds, 5);
    EXPECT_EQ(merged.measuredRows(), 2);
  }
}

TEST_F(ScheduleDatabaseTest, MergesTablesOfBothDatabases) {
  ScheduleDatabase few = makeDatabase(1, 8), many = makeDatabase(2, 40);
  ScheduleDatabase merged = few;
  merged.merge(many);
  EXPECT_EQ(merged.size(), 2u);
  EXPECT_EQ(rowsOf(*merged.find(keyOf(0))), allRows(40));
  EXPECT_EQ(rowsOf(*merged.find(keyOf(1))), allRows(40));
  merged = many;
  merged.merge(few);
  expectEqual(*merged.find(keyOf(0)), *many.find(keyOf(0)));
}

TEST_F(ScheduleDatabaseTest, CoversComparesRows) {
  TunedSchedules tuned = tunedFor({1, 2, 3, 8, 100});
  EXPECT_TRUE(tuned.covers({1, 8, 100}));
  EXPECT_TRUE(tuned.covers({}));
  EXPECT_FALSE(tuned.covers({1, 4, 8}));
  EXPECT_FALSE(tuned.covers({101}));
  EXPECT_FALSE(TunedSchedules().covers({1}));
}

//===----------------------------------------------------------------------===//
// What is served
//===----------------------------------------------------------------------===//

/// What was interrupted serves what it reached, the rule serves the rest.
TEST_F(ScheduleDatabaseTest, TheRuleServesWhatWasNotReached) {
  TunedSchedules tuned = tunedFor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const Schedule own = tuned.choices.front().schedule;
  Result<ScheduleTable> rule = chooseByRule(keyOf(0).shape(), target, 2);
  auto served = servedTable(keyOf(0), tuned, target);
  ASSERT_TRUE(rule && served);
  for (int64_t rows = 1; rows <= 10; ++rows)
    EXPECT_EQ(scheduleFor(*served, rows).microKernel, own.microKernel) << rows;
  for (int64_t rows : {11, 13, 50, 512, 100000})
    EXPECT_EQ(scheduleFor(*served, rows), scheduleFor(*rule, rows)) << rows;

  // A complete table is trusted for as many rows more as the search trusts it.
  tuned.complete = true;
  served = servedTable(keyOf(0), tuned, target);
  ASSERT_TRUE(served);
  EXPECT_EQ(scheduleFor(*served, 20).microKernel, own.microKernel);
  for (int64_t rows : {21, 512, 100000})
    EXPECT_EQ(scheduleFor(*served, rows), scheduleFor(*rule, rows)) << rows;

  served = servedTable(keyOf(0), TunedSchedules(), target);
  ASSERT_TRUE(served);
  EXPECT_EQ(served->size(), rule->size());
}

/// In every packing the table can run, also where the rule cannot.
TEST_F(ScheduleDatabaseTest, EveryPackingIsServed) {
  for (const char *name : {"x86-64-avx2", "x86-64-avx512-bf16", "x86-64-amx"}) {
    Target other = *getTarget(name);
    const MatrixISA floats = *std::ranges::find_if_not(
        other.matrixISAs | std::views::reverse, multipliesIntegers);
    ScheduleKey key = keyOf(0);
    for (const Packing &packing : packingsOf(floats)) {
      key.packing = packing;
      key.storage =
          multipliesBF16(floats) ? StorageFormat::bf16() : StorageFormat::f32();
      auto served = servedTable(key, {}, other);
      ASSERT_TRUE(served) << served.error().message;
      EXPECT_EQ(served->back().maxRows, INT64_MAX);
      for (const ScheduleTableEntry &entry : *served) {
        Status status = verify(entry.schedule, key.shape());
        EXPECT_TRUE(status) << status.error().message;
      }
    }
  }
}

TEST_F(ScheduleDatabaseTest, FindsTheBestThereIs) {
  ScheduleDatabase database;
  TuningGroup group = makeGroup(0);
  auto best = [&] { return database.findTuned(group, target, isa)->first; };
  EXPECT_FALSE(database.findTuned(group, target, isa));
  TunedSchedules derived = tunedFor(allRows(20), 1, false);
  derived.complete = true;
  database.insert(keyOf(0, Strategy::ScaleUpAndOut), derived);
  EXPECT_EQ(best().strategy, Strategy::ScaleUpAndOut);
  database.insert(keyOf(0, Strategy::ScaleUpAndOut), tunedFor({1, 2}));
  EXPECT_EQ(best().strategy, Strategy::ScaleUpAndOut);
  TunedSchedules exhaustive = tunedFor({1});
  exhaustive.complete = true;
  database.insert(keyOf(0, Strategy::Exhaustive), exhaustive);
  EXPECT_EQ(best().strategy, Strategy::Exhaustive);
  database.insert(keyOf(0), tunedFor({1}));
  EXPECT_EQ(best().strategy, Strategy::Sandwich);
  // Another packing, with more in it.
  ScheduleKey wide = keyOf(0);
  wide.packing = packingsOf(isa).back();
  database.insert(wide, tunedFor({1, 2}));
  EXPECT_EQ(best(), wide);
  group.shape.packing = packingOf(isa);
  EXPECT_EQ(best(), keyOf(0));

  // What another machine measured serves none but it.
  ScheduleDatabase foreign;
  ScheduleKey key = keyOf(0);
  key.machine.l2Bytes += 1;
  foreign.insert(key, tunedFor({1}));
  EXPECT_FALSE(foreign.findTuned(group, target, isa));
}

TEST_F(ScheduleDatabaseTest, FindsThePackingOfAStrategyAndATrace) {
  ScheduleDatabase database;
  TuningGroup group = makeGroup(0);
  ScheduleKey wide = keyOf(0);
  wide.packing = packingsOf(isa).back();
  TunedSchedules tuned = tunedFor({1, 2});
  tuned.traces = {"prompts"};
  database.insert(wide, tuned);
  auto find = [&](Strategy strategy, const char *trace) {
    return database.findPacking(group, target, isa, strategy, trace);
  };
  EXPECT_EQ(find(Strategy::Sandwich, "prompts"), wide.packing);
  EXPECT_FALSE(find(Strategy::Sandwich, "tokens"));
  EXPECT_FALSE(find(Strategy::ScaleUpAndOut, "prompts"));
  EXPECT_EQ(traceName({{1, 3}, {8, 1}}), traceName({{1, 6}, {8, 2}}));
  EXPECT_NE(traceName({{1, 3}, {8, 1}}), traceName({{1, 3}, {9, 1}}));
  EXPECT_NE(traceName({{1, 3}, {8, 1}}), traceName({{1, 3}, {8, 2}}));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Processes that add to one file at the same time, each its own groups and
/// some rows of a common one.
TEST_F(ScheduleDatabaseTest, WritersAtTheSameTimeLoseNothing) {
  constexpr int64_t writers = 4, saves = 12;
  std::vector<pid_t> children;
  for (int64_t writer = 0; writer < writers; ++writer) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ScheduleDatabase own;
      for (int64_t i = 0; i < saves; ++i) {
        own.add(keyOf(1 + writer * saves + i), tunedFor({1, 2}));
        own.add(keyOf(0), tunedFor({1 + writer + i * writers}));
        if (!own.synchronize(path))
          ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->size(), 1u + writers * saves);
  ASSERT_NE(loaded->find(keyOf(0)), nullptr);
  EXPECT_EQ(rowsOf(*loaded->find(keyOf(0))), allRows(writers * saves));
}

TEST_F(ScheduleDatabaseTest, SynchronizingRefusesWhatLoadingRefuses) {
  write("not a database");
  ScheduleDatabase database;
  Status status = database.synchronize(path);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("is no schedule database"),
            std::string::npos);
  EXPECT_EQ(read(), "not a database");
  status = database.synchronize(folder / "none" / "file");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("cannot create"), std::string::npos);
}

/// By a link and by its own name, a file has one lock.
TEST_F(ScheduleDatabaseTest, LinksAreFollowed) {
  fs::path link = folder / "link";
  ScheduleDatabase one, two;
  one.add(keyOf(0), tunedFor({1}));
  two.add(keyOf(1), tunedFor({1}));
  ASSERT_TRUE(one.synchronize(path));
  fs::create_symlink(path, link);
  ASSERT_TRUE(two.synchronize(link));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_FALSE(fs::exists(link.string() + ".lock"));
  EXPECT_EQ(ScheduleDatabase::load(path)->size(), 2u);
}

/// What another version tuned is neither found nor lost, even if this one could
/// not run it.
TEST_F(ScheduleDatabaseTest, KeepsWhatOtherVersionsTuned) {
  ScheduleKey old = keyOf(0);
  old.compilerVersion = "0.0.9";
  TunedSchedules impossible = tunedFor({1, 2});
  impossible.choices.front().schedule.microKernel = {isa, 40, 32};
  ScheduleDatabase database;
  database.insert(old, impossible);
  ASSERT_TRUE(database.save(path));
  const std::string before = read();
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->size(), 0u);
  ASSERT_TRUE(loaded->save(path));
  EXPECT_EQ(read(), before);

  ScheduleDatabase own;
  own.add(keyOf(1), tunedFor({1}));
  ASSERT_TRUE(own.synchronize(path));
  ASSERT_TRUE(own.synchronize(path));
  std::string text = read();
  size_t at = text.find("\"0.0.9\"");
  ASSERT_NE(at, text.npos);
  EXPECT_EQ(text.find("\"0.0.9\"", at + 1), text.npos);
  EXPECT_NE(text.find("_40x32"), text.npos);
}

/// A table in which every field says something.
AttentionTable tunedAttention(int64_t tiles = 8) {
  const AttentionSchedule first{.decode = {2, 4, 8},
                                .split = 3,
                                .prefill = {12, 2, 6},
                                .tiles = tiles,
                                .instructions = isa};
  const AttentionSchedule second{.decode = {1, 1, 3}, .prefill = {5, 3, 9}};
  return {{.maxSegments = 2, .maxPositions = 100, .schedule = first},
          {.maxSegments = 4, .schedule = second},
          {.schedule = first}};
}

TEST_F(ScheduleDatabaseTest, KeepsAttention) {
  const AttentionShape shape{.cacheHeads = 3,
                             .group = 2,
                             .headDim = 64,
                             .cache = AttentionElement::BF16,
                             .query = AttentionElement::F32,
                             .result = AttentionElement::F16};
  const AttentionKey key = AttentionKey::of(shape, target, 7);
  ScheduleDatabase database = makeDatabase(1, 4);
  database.insert(key, tunedAttention());
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->size(), 1u);
  ASSERT_NE(loaded->find(key), nullptr);
  EXPECT_EQ(*loaded->find(key), tunedAttention());
  const std::string text = read();
  ASSERT_TRUE(loaded->save(path));
  EXPECT_EQ(read(), text);

  // Every part of the key matters.
  auto isKnown = [&](auto change) {
    AttentionKey other = key;
    change(other);
    return loaded->find(other) != nullptr;
  };
  EXPECT_TRUE(isKnown([](AttentionKey &) {}));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.compilerVersion = "0"; }));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.machine.l2Bytes += 1; }));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.targetFeatures = ""; }));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.threads = 1; }));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.shape.cacheHeads = 1; }));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.shape.group = 1; }));
  EXPECT_FALSE(isKnown([](AttentionKey &key) { key.shape.headDim = 32; }));
  for (auto element : {&AttentionShape::cache, &AttentionShape::query,
                       &AttentionShape::result})
    EXPECT_FALSE(isKnown([&](AttentionKey &key) {
      key.shape.*element = key.shape.*element == AttentionElement::F16
                               ? AttentionElement::F32
                               : AttentionElement::F16;
    }));

  // Whoever writes later has the newer table; others are kept.
  ScheduleDatabase newer;
  newer.insert(key, tunedAttention(16));
  const AttentionKey second = AttentionKey::of(shape, target, 8);
  AttentionKey old = key;
  old.compilerVersion = "0.0.9";
  newer.insert(second, tunedAttention());
  newer.insert(old, tunedAttention());
  ASSERT_TRUE(newer.synchronize(path));
  ScheduleDatabase empty;
  ASSERT_TRUE(empty.synchronize(path));
  EXPECT_EQ(*empty.find(key), tunedAttention(16));
  EXPECT_EQ(*empty.find(second), tunedAttention());
  EXPECT_EQ(empty.find(old), nullptr);
  EXPECT_NE(read().find("\"0.0.9\""), std::string::npos);
}

TEST_F(ScheduleDatabaseTest, KeepsParametersOfKernels) {
  const KernelTuningKey key =
      KernelTuningKey::of("func.func @norm", {{"rows", 1}, {"n", 64}}, target);
  ScheduleDatabase database;
  database.insert(key, {{"LANES", 32}, {"ROWS", 4}});
  ASSERT_TRUE(database.save(path));
  Result<ScheduleDatabase> loaded = ScheduleDatabase::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_NE(loaded->find(key), nullptr);
  EXPECT_EQ(*loaded->find(key), (KernelParameters{{"LANES", 32}, {"ROWS", 4}}));
  auto isKnown = [&](auto change) {
    KernelTuningKey other = key;
    change(other);
    return loaded->find(other) != nullptr;
  };
  EXPECT_TRUE(isKnown([](KernelTuningKey &) {}));
  EXPECT_FALSE(isKnown([&](KernelTuningKey &other) {
    other = KernelTuningKey::of("func.func @other", key.sizes, target);
  }));
  EXPECT_FALSE(
      isKnown([](KernelTuningKey &other) { other.sizes["rows"] = 2; }));
  EXPECT_FALSE(
      isKnown([](KernelTuningKey &other) { other.targetFeatures = "+x"; }));

  // What others wrote, and other versions, is kept.
  ScheduleDatabase newer;
  KernelTuningKey old = key;
  old.compilerVersion = "0.0.9";
  newer.insert(key, {{"LANES", 8}});
  newer.insert(old, {{"LANES", 16}});
  ASSERT_TRUE(newer.synchronize(path));
  ScheduleDatabase empty;
  ASSERT_TRUE(empty.synchronize(path));
  EXPECT_EQ(*empty.find(key), (KernelParameters{{"LANES", 8}}));
  EXPECT_EQ(empty.find(old), nullptr);
  EXPECT_NE(read().find("\"0.0.9\""), std::string::npos);
}

TEST_F(ScheduleDatabaseTest, RefusesKernelsThatAreDamaged) {
  auto errorWith = [&](auto change) {
    KernelTuningKey key = KernelTuningKey::of("text", {{"rows", 1}}, target);
    KernelParameters parameters = {{"LANES", 8}};
    change(key, parameters);
    ScheduleDatabase database;
    database.insert(key, parameters);
    EXPECT_TRUE(database.save(path));
    return loadError();
  };
  EXPECT_EQ(errorWith([](KernelTuningKey &, KernelParameters &) {}), "");
  EXPECT_EQ(errorWith([](KernelTuningKey &key, KernelParameters &) {
              key.sizes["rows"] = -1;
            }),
            "line 5: kernels[0].key: sizes: rows is -1, not between 0 and "
            "1099511627776");
  EXPECT_EQ(errorWith([](KernelTuningKey &key, KernelParameters &) {
              key.kernel.clear();
            }),
            "line 5: kernels[0].key: kernel is missing");
  EXPECT_EQ(errorWith([](KernelTuningKey &, KernelParameters &parameters) {
              parameters.clear();
            }),
            "line 5: kernels[0]: has no parameters");
  EXPECT_EQ(errorWith([](KernelTuningKey &, KernelParameters &parameters) {
              parameters["LANES"] = -8;
            }),
            "line 5: kernels[0]: parameters: LANES is -8, not between 0 and "
            "1099511627776");
  EXPECT_EQ(errorWith([](KernelTuningKey &key, KernelParameters &) {
              key.compilerVersion.clear();
            }),
            "line 5: kernels[0].key: compiler_version is missing");
}

TEST_F(ScheduleDatabaseTest, RefusesAttentionThatCannotRun) {
  const AttentionKey good = AttentionKey::of(
      {.group = 2, .headDim = 64, .cache = AttentionElement::BF16}, target, 2);
  auto errorWith = [&](auto change) {
    AttentionKey key = good;
    AttentionTable table = tunedAttention();
    change(key, table);
    ScheduleDatabase database;
    database.insert(key, table);
    EXPECT_TRUE(database.save(path));
    return loadError();
  };
  EXPECT_EQ(errorWith([](AttentionKey &, AttentionTable &) {}), "");
  EXPECT_EQ(
      errorWith([](AttentionKey &key, AttentionTable &) { key.threads = 0; }),
      "line 5: attention[0].key: threads is 0, not between 1 and "
      "1099511627776");
  EXPECT_EQ(
      errorWith([](AttentionKey &key, AttentionTable &) {
        key.shape.cache = AttentionElement::F32;
      }),
      "line 5: attention[0]: X86_AVX512_BF16 needs a cache of bf16 or int8");
  EXPECT_EQ(errorWith([](AttentionKey &key, AttentionTable &) {
              key.shape.cache = AttentionElement::Int8;
            }),
            "");
  EXPECT_EQ(
      errorWith([](AttentionKey &key, AttentionTable &) {
        key.shape.query = AttentionElement::Int8;
      }),
      "line 5: attention[0].key: query_type is 'int8', which only a cache "
      "is");
  EXPECT_EQ(errorWith([](AttentionKey &, AttentionTable &table) {
              table.front().schedule.tiles = 65;
            }),
            "line 5: attention[0]: tiles must be 1 to 64");
  EXPECT_EQ(errorWith([](AttentionKey &, AttentionTable &table) {
              table.pop_back();
            }),
            "line 5: attention[0]: the last entry must be for all: [?, ?]");
  EXPECT_EQ(errorWith([](AttentionKey &key, AttentionTable &) {
              key.compilerVersion.clear();
            }),
            "line 5: attention[0].key: compiler_version is missing");
}

/// What was saved is what tuning goes on from.
TEST_F(ScheduleDatabaseTest, ChoicesServeARestart) {
  ScheduleDatabase database = makeDatabase(1);
  TuningGroup group = makeGroup(0);
  std::vector<Choice> known = database.find(keyOf(0))->choices;
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
  write("format: \"sandwich schedules\"\nformat_version: 1\n");
  EXPECT_EQ(loadError(),
            "format_version is 1; this version of Sandwich reads 2 to 5");
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
  const int count = test::timesToRepeat(400, 40);
  for (int i = 0; i < count; ++i) {
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
  EXPECT_GT(refused, static_cast<size_t>(count) * 3 / 4);
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
    return tuned.choices.front().schedule;
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
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              schedule(tuned).chunkK = 3;
            }),
            "line 5: groups[0]: ranges[0]: K of a chunk, 3, must be a multiple "
            "of the packing's 2");
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              schedule(tuned).packsInput = true;
            }),
            "line 5: groups[0]: ranges[0]: X86_AVX512_BF16_3x128 does not read "
            "packed input");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &tuned) {
              schedule(tuned).threads = {1, key.threads + 1, 1};
            }),
            "line 5: groups[0]: ranges[0]: its thread grid needs 3 threads, "
            "the group has 2");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &) {
              key.roundsInput = true;
            }),
            "line 5: groups[0].key: rounds_input is true, but weights of bf16 "
            "are no integers");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &tuned) {
              const MicroKernel kernel{MatrixISA::X86_AVX512_VNNI, 4, 32};
              const TuningGroup group = makeQuantizedGroup(false);
              key = ScheduleKey::of(group, target, kernel.isa,
                                    Strategy::Sandwich);
              tuned = tunedBy(kernel, group);
            }),
            "line 5: groups[0]: ranges[0]: X86_AVX512_VNNI_4x32 rounds its "
            "input, which the group does not");
  EXPECT_EQ(errorWith([&](ScheduleKey &, TunedSchedules &tuned) {
              tuned.choices[1].seconds = -1;
            }),
            "line 5: groups[0]: rows ascend and have positive seconds; one is "
            "of 2 rows and -1 s");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &) {
              key.machine.l2Bytes = -1;
            }),
            "line 5: groups[0].key: machine.l2_bytes is -1, not between 1 and "
            "1099511627776");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &) { key.n = 0; }),
            "line 5: groups[0].key: n is 0, not between 1 and 1099511627776");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &) {
              key.epilogue.kind = Epilogue::RotateAppendKV;
            }),
            "line 5: groups[0].key: epilogue.cache_heads is 0, not between 1 "
            "and 1099511627776");
  EXPECT_EQ(errorWith([&](ScheduleKey &key, TunedSchedules &) {
              key.columnUnit = 64;
              key.epilogue.kind = Epilogue::RotateAppendKV;
              key.epilogue.cacheHeads = 8;
            }),
            "line 5: groups[0].key: epilogue.cache_heads is 8, which leaves no "
            "queries of 1024 channels in heads of 64");
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
  fs::path second = abandoned.string() + "-1";
  fs::path other = path.string() + ".partial-notes";
  fs::path numbered = abandoned.string() + "-1-notes";
  for (const fs::path &file : {abandoned, second, used, other, numbered})
    std::ofstream(file) << "half";
  ASSERT_TRUE(ScheduleDatabase().save(path));
  for (const fs::path &file : {abandoned, second})
    EXPECT_FALSE(fs::exists(file)) << file;
  for (const fs::path &file : {used, other, numbered})
    EXPECT_TRUE(fs::exists(file)) << file;
}

} // namespace
