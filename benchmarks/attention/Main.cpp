//===- Main.cpp - Compiled attention beside the machine's limits ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times attention of steps in turn with plain reading of as many keys and
/// values, and, for prompts, with multiplication in the caches.
///
//===----------------------------------------------------------------------===//

#include "../CommandLine.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/Statistics.h"
#include "sandwich/Tuning/AttentionTuner.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

using namespace sandwich;

namespace {

struct Settings {
  AttentionShape shape{.cacheHeads = 16,
                       .group = 1,
                       .headDim = 128,
                       .cache = AttentionElement::BF16,
                       .query = AttentionElement::F32,
                       .result = AttentionElement::BF16};
  int64_t threads = 0;
  int64_t context = 1024;
  std::vector<int64_t> sequences = {1, 8, 32};
  std::vector<int64_t> prompts = {2048};
  size_t rounds = 15;
  bool tune = false;
  std::string schedules = "attention-schedules.txt";
  /// Instead of the table's.
  std::vector<int64_t> keyBlocks, chunks, splits;
};

std::vector<AttentionPayload> payloadsOf(const Settings &settings) {
  std::vector<AttentionPayload> payloads;
  for (int64_t segments : settings.sequences)
    payloads.push_back({.segments = segments, .positions = settings.context});
  for (int64_t tokens : settings.prompts)
    payloads.push_back({.tokens = tokens, .positions = tokens});
  return payloads;
}

Result<AttentionTable> tableFor(const Settings &settings, const Target &target,
                                int64_t maxTokens, const CpuBudget &budget) {
  if (!settings.tune)
    return chooseUntuned(settings.shape, target, settings.threads);
  ModelTuningOptions tuning;
  tuning.threads = settings.threads;
  tuning.cpus = budget.cpusFor(static_cast<unsigned>(settings.threads));
  tuning.database = settings.schedules;
  SANDWICH_ASSIGN_OR_RETURN(
      TunedModelAttention tuned,
      tuneModelAttention(
          {settings.shape}, target, maxTokens, tuning, [](double) -> Status {
            return interrupted() ? Status(makeError("interrupted")) : Status();
          }));
  if (tuned.measurements > 0)
    std::fprintf(stderr, "tuned in %.1f s with %ld measurements\n",
                 tuned.seconds, tuned.measurements);
  return tuned.tables.front();
}

/// The table's for `payload`, and with other sizes where these are asked for.
std::vector<AttentionSchedule> schedulesFor(const Settings &settings,
                                            const AttentionTable &table,
                                            const AttentionPayload &payload) {
  const AttentionSchedule &first =
      std::ranges::find_if(table, [&](const AttentionTableEntry &entry) {
        return payload.segments <= entry.maxSegments &&
               payload.positions <= entry.maxPositions;
      })->schedule;
  auto orOwn = [](std::vector<int64_t> sizes, int64_t own) {
    return sizes.empty() ? std::vector{own} : sizes;
  };
  auto tileOf = [&](AttentionSchedule &schedule) -> AttentionTile & {
    return payload.tokens == 1 ? schedule.decode : schedule.prefill;
  };
  AttentionSchedule schedule = first;
  std::vector<AttentionSchedule> schedules;
  for (int64_t keyBlocks :
       orOwn(settings.keyBlocks, tileOf(schedule).keyBlocks))
    for (int64_t chunk : orOwn(settings.chunks, tileOf(schedule).chunk))
      for (int64_t split : orOwn(settings.splits, schedule.split)) {
        AttentionSchedule other = first;
        tileOf(other).keyBlocks = keyBlocks;
        tileOf(other).chunk = chunk;
        other.split = split;
        schedules.push_back(other);
      }
  return schedules;
}

void print(const AttentionPayload &payload, const AttentionSchedule &schedule,
           const AttentionLimit &limit, std::optional<double> peakFlops) {
  const AttentionTile &tile =
      payload.tokens == 1 ? schedule.decode : schedule.prefill;
  std::printf("%9ld %7ld %8ld %10.1f %7.1f %7.1f %6.0f%%", payload.segments,
              payload.tokens, payload.positions, limit.seconds * 1e6,
              limit.bytes / limit.seconds / 1e9,
              limit.bytes / limit.readSeconds / 1e9, limit.readShare * 100);
  if (peakFlops)
    std::printf(" %8.0f %7.0f %6.0f%%", limit.operations / limit.seconds / 1e9,
                *peakFlops / 1e9,
                limit.operations / limit.seconds / *peakFlops * 100);
  else
    std::printf(" %8s %7s %7s", "", "", "");
  std::printf("  rows %ld, key blocks %ld, chunk %ld, ", tile.rows,
              tile.keyBlocks, tile.chunk);
  if (payload.tokens == 1)
    std::printf("split %ld\n", schedule.split);
  else
    std::printf("tiles %ld, %s\n", schedule.tiles,
                schedule.instructions
                    ? std::string(name(*schedule.instructions)).c_str()
                    : "FMA");
  std::fflush(stdout);
}

/// What multiplication in the caches comes to, with the schedule's
/// instructions.
Result<double> measurePeak(MeasuringEvaluator &evaluator, const Target &target,
                           const AttentionSchedule &schedule) {
  const MatmulShape shape{.n = 2048,
                          .k = 2048,
                          .storage = schedule.instructions
                                         ? StorageFormat::bf16()
                                         : StorageFormat::f32()};
  if (schedule.instructions)
    return evaluator.measurePeakFlops(shape, *schedule.instructions);
  SANDWICH_ASSIGN_OR_RETURN(ScheduleTable table,
                            chooseUntuned(shape, target, /*threads=*/1));
  return evaluator.measurePeakFlops(shape,
                                    table.front().schedule.microKernel.isa);
}

Status run(Settings settings) {
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  if (settings.threads == 0)
    settings.threads = budget.threads();
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget("host"));
  AttentionMeasuringOptions options;
  options.threads = static_cast<unsigned>(settings.threads);
  options.cpus = budget.cpusFor(options.threads);
  options.payloads = payloadsOf(settings);
  options.stop = interrupted;
  for (const AttentionPayload &payload : options.payloads)
    options.maxTokens =
        std::max(options.maxTokens, payload.segments * payload.tokens);
  SANDWICH_ASSIGN_OR_RETURN(
      AttentionTable table,
      tableFor(settings, target, options.maxTokens, budget));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<MeasuringAttentionEvaluator> evaluator,
      MeasuringAttentionEvaluator::create(settings.shape, target, options));
  MeasuringOptions multiplying;
  multiplying.threads = options.threads;
  multiplying.cpus = options.cpus;
  multiplying.weightBytes = uint64_t(64) << 20;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<MeasuringEvaluator> matmuls,
                            MeasuringEvaluator::create(target, multiplying));
  std::printf("%9s %7s %8s %10s %7s %7s %7s %8s %7s %7s\n", "sequences",
              "tokens", "context", "us", "GB/s", "read", "share", "GFLOP/s",
              "peak", "share");
  for (const AttentionPayload &payload : options.payloads)
    for (const AttentionSchedule &schedule :
         schedulesFor(settings, table, payload)) {
      SANDWICH_RETURN_IF_ERROR(verify(schedule));
      SANDWICH_RETURN_IF_ERROR(verify(schedule, settings.shape));
      std::optional<double> peak;
      if (payload.tokens > 1) {
        SANDWICH_ASSIGN_OR_RETURN(peak,
                                  measurePeak(*matmuls, target, schedule));
      }
      SANDWICH_ASSIGN_OR_RETURN(
          AttentionLimit limit,
          evaluator->compareToReading(payload, schedule, settings.rounds));
      print(payload, schedule, limit, peak);
    }
  return {};
}

} // namespace

int main(int argc, char **argv) try {
  prepareStandardStreams();
  CLI::App app{
      "Measures compiled attention in turn with plain reading of as many keys "
      "and values,\nand of prompts beside multiplication in the caches. Run it "
      "on an idle machine.\n\n"
      "  sandwich-benchmark-attention --threads=2\n"
      "  sandwich-benchmark-attention --heads 8 --group 4 --sequences 8 "
      "--chunks 4,8,16",
      "sandwich-benchmark-attention"};
  Settings settings;
  app.add_option("--threads", settings.threads,
                 "Threads (default: what this machine allows)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--heads", settings.shape.cacheHeads, "Heads of the KV cache")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--group", settings.shape.group, "Query heads for each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--head-dim", settings.shape.headDim, "Channels of a head")
      ->check(CLI::Range(16, 512))
      ->capture_default_str();
  std::string dtype = "bf16";
  app.add_option("--kv-dtype", dtype, "Element type of the cache")
      ->check(CLI::IsMember({"bf16", "f16", "f32", "int8"}))
      ->capture_default_str();
  app.add_option("--context", settings.context,
                 "Tokens that each sequence's next one attends to")
      ->check(CLI::Range(1, 1 << 17))
      ->capture_default_str();
  app.add_option("--sequences", settings.sequences,
                 "Sequences that decode together")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--prompts", settings.prompts, "Tokens of prompts")
      ->delimiter(',')
      ->check(CLI::Range(2, 1 << 15));
  std::string tune = "none";
  app.add_option("--tune", tune,
                 "full: measured schedules; none: the untuned rule's")
      ->check(CLI::IsMember({"none", "full"}))
      ->capture_default_str();
  app.add_option("--schedules", settings.schedules,
                 "File of tuned schedules; what is in it is not tuned again")
      ->capture_default_str();
  app.add_option("--key-blocks", settings.keyBlocks,
                 "Blocks whose keys are multiplied at once, instead of the "
                 "schedule's")
      ->delimiter(',');
  app.add_option("--chunks", settings.chunks,
                 "Blocks whose scores are held at once, instead")
      ->delimiter(',');
  app.add_option("--splits", settings.splits,
                 "Parts of a context that are computed apart, instead")
      ->delimiter(',');
  app.add_option("--rounds", settings.rounds, "Measurements of each, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  if (std::optional<int> status = readCommandLine(app, argc, argv))
    return *status;
  settings.shape.cache = *attentionElementNamed(dtype);
  settings.tune = tune == "full";
  catchInterrupts();
  if (Status status = run(settings); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
