//===- Main.cpp - Studies of the search for schedules ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CommandLine.h"
#include "Studies.h"
#include "Thresholds.h"

#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Support/Process.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace sandwich;
using namespace sandwich::benchmark;

static Result<std::vector<MatmulShape>>
parseShapes(const std::vector<std::string> &texts, bool bf16) {
  std::vector<MatmulShape> shapes;
  constexpr int64_t largest = int64_t(1) << 20;
  for (const std::string &text : texts) {
    MatmulShape shape;
    shape.storage = bf16 ? StorageFormat::bf16() : StorageFormat::f32();
    char rest = 0;
    if (std::sscanf(text.c_str(), "%ldx%ld%c", &shape.n, &shape.k, &rest) !=
            2 ||
        shape.n < 1 || shape.k < 1 || shape.n > largest || shape.k > largest)
      return makeError("'", text, "' is no shape such as 6144x2048 (N x K)");
    shapes.push_back(shape);
  }
  return shapes;
}

int main(int argc, char **argv) try {
  prepareStandardStreams();
  CLI::App app{
      "Studies of the search for schedules, measured on this machine, which "
      "should be idle.\n\n"
      "  sandwich-benchmark-tuning ablation\n"
      "  sandwich-benchmark-tuning sample --points 20\n"
      "  sandwich-benchmark-tuning window\n"
      "  sandwich-benchmark-tuning extension --tuned-rows 64\n"
      "  sandwich-benchmark-tuning thresholds --target x86-64-amx\n",
      "sandwich-benchmark-tuning"};
  app.require_subcommand(1);
  StudyOptions options;
  app.add_option("--threads", options.threads,
                 "Threads (default: what this machine allows)");
  std::string dtype = "bf16";
  app.add_option("--dtype", dtype, "Element type of weights")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds,
                 "Rounds in which what was found is compared")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  std::vector<std::string> shapeTexts = {"6144x2048", "2048x2048", "11008x2048",
                                         "2048x5504"};
  app.add_option("--shapes", shapeTexts, "Shapes of weights, N x K")
      ->delimiter(',')
      ->capture_default_str();

  CLI::App *ablation = app.add_subcommand(
      "ablation", "What fast start, finetune and split-k add to the model");
  std::vector<int64_t> rows = {1, 8, 128};
  ablation->add_option("--rows", rows, "Numbers of rows, M")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->capture_default_str();

  CLI::App *sample = app.add_subcommand(
      "sample", "The search against exhaustive search on random matmuls");
  int64_t points = 20, mostSchedules = 1500;
  uint64_t seed = 1;
  sample->add_option("--points", points, "Random matmuls")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sample
      ->add_option("--most-schedules", mostSchedules,
                   "The most schedules of each that are measured; of larger "
                   "spaces as many are drawn")
      ->check(CLI::Range(100, 10000000))
      ->capture_default_str();
  sample->add_option("--seed", seed, "Of the random matmuls")
      ->capture_default_str();

  CLI::App *window = app.add_subcommand(
      "window", "Sliding windows and reuse thresholds: tuning time and speed");
  std::vector<int64_t> windows = {5, 10, 15, 20};
  std::vector<double> thresholds = {0.1};
  window->add_option("--windows", windows, "Values of sigma")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  window->add_option("--thresholds", thresholds, "Reuse thresholds")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  CLI::App *thresholdsStudy = app.add_subcommand(
      "thresholds", "The search without each of its thresholds, on a noisy "
                    "cost model: no machine needed");
  std::string targetName = "host";
  double noise = 0.03, limitShare = 0.9;
  thresholdsStudy->add_option("--target", targetName, "CPU of the cost model")
      ->capture_default_str();
  thresholdsStudy
      ->add_option("--noise", noise,
                   "Standard deviation of a measurement, as a share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  thresholdsStudy
      ->add_option("--limit-share", limitShare,
                   "What the best schedule reaches of the machine's limit")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  int64_t runs = 20;
  thresholdsStudy->add_option("--runs", runs, "Runs, each with other noise")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  CLI::App *extension = app.add_subcommand(
      "extension", "More rows than were tuned: the last schedule repeated "
                   "against the untuned rule");
  int64_t tunedRows = 64, extendedRows = 1024;
  extension->add_option("--tuned-rows", tunedRows, "Rows tuned for")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  extension->add_option("--max-rows", extendedRows, "The most rows")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  int64_t maxRows = 512;
  for (CLI::App *study : {sample, window, thresholdsStudy})
    study->add_option("--max-rows", maxRows, "The most rows")
        ->check(CLI::Range(1, 512))
        ->capture_default_str();
  if (std::optional<int> status = readCommandLine(app, argc, argv))
    return *status;
  options.bf16 = dtype == "bf16";
  auto run = [&]() -> Status {
    SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
    if (app.count("--threads") == 0)
      options.threads = budget.threads();
    if (options.threads < 1)
      return makeError("--threads must be at least 1");
    options.cpus = budget.cpusFor(static_cast<unsigned>(options.threads));
    SANDWICH_ASSIGN_OR_RETURN(std::vector<MatmulShape> shapes,
                              parseShapes(shapeTexts, options.bf16));
    if (thresholdsStudy->parsed()) {
      SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(targetName));
      return studyThresholds(target, shapes, options.threads, maxRows, noise,
                             limitShare, runs);
    }
    if (extension->parsed())
      options.mostRows = extendedRows;
    SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Studies> studies,
                              Studies::create(options));
    if (extension->parsed())
      return studies->extension(shapes, tunedRows);
    if (ablation->parsed())
      return studies->ablation(shapes, rows);
    if (sample->parsed())
      return studies->sample(shapes, maxRows, points, mostSchedules, seed);
    return studies->window(shapes, maxRows, windows, thresholds);
  };
  if (Status status = run(); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
