//===- Main.cpp - Compiled matmuls against oneDNN and the machine ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CommandLine.h"
#include "Comparison.h"
#include "LayeredMatmul.h"

#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/Strategies.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Tuning/ModelTuner.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {

struct Options : ComparisonOptions {
  std::vector<std::string> dtypes = {"bf16", "f32"};
  std::vector<std::string> shapes = {"6144x2048", "2048x2048", "11008x2048",
                                     "2048x5504"};
  std::string activations = "int8";
  bool tune = true;
  std::string strategy = "sandwich";
  std::string schedules = "gemm-schedules.txt";
  /// One for all rows, in the form of IR.
  std::string schedule;
  std::string csv;
};

/// All points of one element type.
struct Points {
  std::string dtype;
  std::vector<Comparison> points;
};

Result<MatmulShape> parseShape(const std::string &text,
                               const StorageFormat &storage, bool rounds) {
  MatmulShape shape;
  shape.storage = storage;
  shape.roundsInput = rounds && storage.hasIntegers();
  char rest = 0;
  constexpr int64_t largest = int64_t(1) << 20;
  if (std::sscanf(text.c_str(), "%ldx%ld%c", &shape.n, &shape.k, &rest) != 2 ||
      shape.n < 1 || shape.k < 1 || shape.n > largest || shape.k > largest)
    return makeError("'", text, "' is no shape such as 6144x2048 (N x K)");
  if (Status status = verify(storage, shape.k); !status)
    return status.error().inContext("'" + text + "'");
  return shape;
}

/// One schedule for all rows; `shape` gets the packing that it reads.
Result<ScheduleTable> tableOf(const std::string &text, MatmulShape &shape) {
  SANDWICH_ASSIGN_OR_RETURN(Schedule schedule, parseSchedule(text));
  // What the first packing that it reads does not go with.
  Status problem;
  for (const Packing &packing :
       packingsOf(schedule.microKernel.isa, shape.storage)) {
    shape.packing = packing;
    if (!reads(schedule.microKernel, packing, shape.storage))
      continue;
    Status status = verify(schedule, shape);
    if (status)
      return ScheduleTable{{INT64_MAX, schedule}};
    if (problem)
      problem = status;
  }
  return problem ? verify(schedule, shape).error() : problem.error();
}

/// The schedules for `shape`, which gets their packing.
Result<ScheduleTable> schedulesFor(MatmulShape &shape, const Target &target,
                                   const Options &options) {
  if (!options.schedule.empty())
    return tableOf(options.schedule, shape);
  if (!options.tune) {
    SANDWICH_ASSIGN_OR_RETURN(ScheduleTable table,
                              chooseUntuned(shape, target, options.threads));
    shape.packing =
        packingOf(table.front().schedule.microKernel.isa, shape.storage);
    return table;
  }
  ModelTuningOptions tuning;
  SANDWICH_ASSIGN_OR_RETURN(tuning.strategy, strategyNamed(options.strategy));
  tuning.threads = options.threads;
  tuning.cpus = options.cpus;
  tuning.rows = options.rows;
  tuning.trace = defaultTrace(options.rows.back());
  tuning.database = options.schedules;
  SANDWICH_ASSIGN_OR_RETURN(
      TunedModel tuned,
      tuneModel(
          {{shape, options.rows.back()}}, target, tuning, [](double) -> Status {
            return interrupted() ? Status(makeError("interrupted")) : Status();
          }));
  const TunedGroup &group = tuned.groups.front();
  if (tuned.measurements > 0)
    std::fprintf(stderr, "tuned %ld x %ld in %.1f s with %ld measurements\n",
                 shape.n, shape.k, tuned.seconds, tuned.measurements);
  shape.packing = group.group.shape.packing
                      ? *group.group.shape.packing
                      : packingOf(group.table.front().schedule.microKernel.isa,
                                  shape.storage);
  return group.table;
}

void printHeader(const MatmulShape &shape, const std::string &peerName) {
  std::printf("\n%s, N = %ld, K = %ld%s%s\n", shape.storage.name().c_str(),
              shape.n, shape.k, peerName.empty() ? "" : ", against ",
              peerName.c_str());
  std::printf("%5s %10s %8s %7s %7s %7s %7s %9s %7s  %s\n", "M", "us",
              "GFLOP/s", "peak", "GB/s", "read", "limit",
              peerName.empty() ? "" : "peer us",
              peerName.empty() ? "" : "ratio", "schedule");
}

void printRow(const MatmulShape &shape, const Comparison &point) {
  double weightBytes = static_cast<double>(
      sandwich::weightBytes(shape.storage, shape.n, shape.k));
  double flops = 2.0 * static_cast<double>(point.rows * shape.n * shape.k);
  const Schedule &schedule = point.schedule;
  std::printf("%5ld %10.1f %8.0f %7.0f %7.1f %7.1f %6.0f%%", point.rows,
              point.seconds * 1e6, flops / point.seconds / 1e9,
              point.peakFlops / 1e9, weightBytes / point.seconds / 1e9,
              weightBytes / point.readSeconds / 1e9, point.shareOfLimit * 100);
  if (point.ratio)
    std::printf(" %9.1f %7.2f", *point.peerSeconds * 1e6, *point.ratio);
  else
    std::printf(" %9s %7s", "", "");
  auto [bM, bN, bK] = schedule.slice;
  auto [tM, tN, tK] = schedule.threads;
  std::printf(
      "  %s %ldx%ldx%ld on %ldx%ldx%ld, prefetch %ld at %ld, %ld "
      "streams, %s, %s, %s, chunk %ld, %s input, streamed %s, k_group %ld\n",
      schedule.microKernel.name().c_str(), bM, bN, bK, tM, tN, tK,
      schedule.prefetchLines, schedule.prefetchDistance,
      schedule.prefetchStreams,
      std::string(name(schedule.prefetchHint)).c_str(),
      std::string(name(schedule.order)).c_str(),
      std::string(name(schedule.stores)).c_str(), schedule.chunkK,
      schedule.packsInput ? "packed" : "plain",
      std::string(name(schedule.streamed)).c_str(), schedule.groupK);
  std::fflush(stdout);
}

void printSummary(const Points &all) {
  auto summarize = [&](const char *which, auto &&belongs) {
    double least = 0, logarithms = 0, reading = 0;
    int64_t count = 0;
    for (const Comparison &point : all.points) {
      if (!point.ratio || !belongs(point.rows))
        continue;
      least = count == 0 ? *point.ratio : std::min(least, *point.ratio);
      logarithms += std::log(*point.ratio);
      reading += point.shareOfReading;
      ++count;
    }
    if (count > 0)
      std::printf("%s, %s: %ld points, ratio at least %.2f, geometric mean "
                  "%.2f; read at %.0f%% of plain reading on average\n",
                  all.dtype.c_str(), which, count, least,
                  std::exp(logarithms / static_cast<double>(count)),
                  reading / static_cast<double>(count) * 100);
  };
  constexpr int64_t fewTokens = 16;
  summarize("M <= 16", [](int64_t rows) { return rows <= fewTokens; });
  summarize("M > 16", [](int64_t rows) { return rows > fewTokens; });
}

Status run(const Options &options) {
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget("host"));
  std::vector<Points> summaries;
  std::string csv =
      "dtype,n,k,m,seconds,read_seconds,peak_flops,share_of_limit,"
      "share_of_reading,peer,peer_seconds,ratio\n";
  for (const std::string &dtype : options.dtypes) {
    SANDWICH_ASSIGN_OR_RETURN(const StorageFormat storage,
                              StorageFormat::parseOption(dtype));
    Points all{dtype, {}};
    for (const std::string &text : options.shapes) {
      SANDWICH_ASSIGN_OR_RETURN(
          MatmulShape shape,
          parseShape(text, storage, options.activations == "int8"));
      SANDWICH_ASSIGN_OR_RETURN(ScheduleTable table,
                                schedulesFor(shape, target, options));
      std::string peerName;
      bool headerPrinted = false;
      SANDWICH_RETURN_IF_ERROR(compare(
          shape, table, target, options, peerName,
          [&](const Comparison &point) {
            if (!headerPrinted)
              printHeader(shape, peerName);
            headerPrinted = true;
            printRow(shape, point);
            all.points.push_back(point);
            char line[256];
            std::snprintf(
                line, sizeof(line),
                "%s,%ld,%ld,%ld,%.9f,%.9f,%.4g,%.4f,%.4f,%s,%.9f,%.4f\n",
                dtype.c_str(), shape.n, shape.k, point.rows, point.seconds,
                point.readSeconds, point.peakFlops, point.shareOfLimit,
                point.shareOfReading, peerName.c_str(),
                point.peerSeconds.value_or(0), point.ratio.value_or(0));
            csv += line;
          }));
    }
    summaries.push_back(std::move(all));
  }
  std::printf("\n");
  for (const Points &all : summaries)
    printSummary(all);
  if (options.csv.empty())
    return {};
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(options.csv));
  SANDWICH_RETURN_IF_ERROR(file.write(csv));
  return file.commit();
}

} // namespace

int main(int argc, char **argv) try {
  prepareStandardStreams();
  Options options;
  options.rows = {1, 4, 8, 16, 32, 64, 128, 512};
  CLI::App app{
      "Measures compiled matmuls, whose weights come from memory, in turn with "
      "oneDNN's\n(where this program was built with it) and with plain reading "
      "of the same memory.\nResults are checked first. Run it on an idle "
      "machine.\n\n"
      "  sandwich-benchmark-gemm --threads=2\n"
      "  sandwich-benchmark-gemm --dtype bf16 --shapes 4864x896 --rows 1,17\n",
      "sandwich-benchmark-gemm"};
  app.add_option("--threads", options.threads,
                 "Threads (default: what this machine allows)");
  app.add_option("--dtype", options.dtypes,
                 "How weights are stored: bf16, f32, int8, int4, or another "
                 "format of integers as for sandwich-compile")
      ->delimiter(',')
      ->check([](const std::string &text) {
        Result<StorageFormat> format = StorageFormat::parseOption(text);
        return format ? std::string() : format.error().message;
      })
      ->capture_default_str();
  app.add_option("--activations", options.activations,
                 "What is multiplied with weights of integers, as for "
                 "sandwich-compile")
      ->check(CLI::IsMember({"int8", "float"}))
      ->capture_default_str();
  app.add_option("--shapes", options.shapes, "Shapes of weights, N x K")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rows", options.rows, "Numbers of rows, M")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  std::string tune = "full";
  app.add_option("--tune", tune,
                 "full: measured schedules, for each of the rows; none: the "
                 "untuned rule's")
      ->check(CLI::IsMember({"none", "full"}))
      ->capture_default_str();
  app.add_option("--strategy", options.strategy,
                 "How tuning searches, as for sandwich-compile")
      ->capture_default_str();
  app.add_option("--schedules", options.schedules,
                 "File of tuned schedules; what is in it is not tuned again")
      ->capture_default_str();
  app.add_option("--schedule", options.schedule,
                 "This schedule for all rows: <micro_kernel = "
                 "X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = "
                 "[1, 2, 1], prefetch = [8, 8192]>");
  app.add_option("--rounds", options.rounds, "Measurements of each, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  uint64_t megabytes = options.weightBytes >> 20;
  app.add_option("--weight-megabytes", megabytes,
                 "Weights that are walked through in turn")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  bool alone = false;
  app.add_flag("--alone", alone, "Do not run oneDNN");
  app.add_option("--csv", options.csv, "File for the figures");
  if (std::optional<int> status = readCommandLine(app, argc, argv))
    return *status;
  options.tune = tune == "full";
  options.comparePeer = !alone;
  options.weightBytes = megabytes << 20;
  std::ranges::sort(options.rows);
  options.rows.erase(std::ranges::unique(options.rows).begin(),
                     options.rows.end());
  Result<CpuBudget> budget = readCpuBudget();
  if (!budget) {
    std::fprintf(stderr, "error: %s\n", budget.error().message.c_str());
    return 1;
  }
  if (app.count("--threads") == 0)
    options.threads = budget->threads();
  if (options.threads < 1 || options.threads > SANDWICH_MAX_THREADS) {
    std::fprintf(stderr, "error: --threads must be between 1 and %d\n",
                 SANDWICH_MAX_THREADS);
    return 2;
  }
  options.cpus = budget->cpusFor(static_cast<unsigned>(options.threads));
  catchInterrupts();
  if (Status status = run(options); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
