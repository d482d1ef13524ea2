//===- Experiments.cpp - The experiments of section V ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Experiments.h"

#include "Measurement.h"
#include "PaperFigures.h"

#include <cmath>
#include <cstdio>

using namespace sandwich;
using namespace sandwich::benchmark;

static double percent(uint32_t added, uint32_t alone) {
  return alone ? 100.0 * added / alone : 0;
}

/// One cell: the tuned depths of both devices, and the share of queries within
/// the SLO where as many come at once.
static Result<std::string> concurrencyOf(const LatencyLine &accelerator,
                                         const LatencyLine &cpu,
                                         double sloSeconds,
                                         const ExperimentOptions &options) {
  const std::vector<SimulatedDeviceModel> devices = {
      makeDevice(accelerator, options), makeDevice(cpu, options)};
  SANDWICH_ASSIGN_OR_RETURN(const DepthEstimate depths,
                            estimateDepths(devices, sloSeconds, options));
  SANDWICH_ASSIGN_OR_RETURN(const double share,
                            measureShare(devices, depths, options));
  const uint32_t alone = depths.devices[0].depth;
  const uint32_t added = depths.devices[1].depth;
  char text[64];
  std::snprintf(text, sizeof(text), "%3u + %2u (%4.1f%%) %3.0f%%", alone, added,
                percent(added, alone), 100 * share);
  return std::string(text);
}

/// `ofTable`: which of a device's lines the table's own is. `fitted`: whether
/// figure 4 tells of the model, too.
static Status printConcurrencies(const char *title,
                                 PaperConcurrency PaperMachine::*paper,
                                 LatencyLine PaperDevice::*ofTable, bool fitted,
                                 const ExperimentOptions &options) {
  std::printf("%s\n%-28s %5s %23s %22s", title, "", "limit", "paper",
              "line of the table");
  if (fitted)
    std::printf(" %22s", "line of figure 4");
  std::printf("\n");
  for (const PaperMachine *machine : {&gpuMachine, &npuMachine})
    for (size_t i = 0; i < limits.size(); ++i) {
      const PaperConcurrency &figures = machine->*paper;
      const std::string names =
          std::string(machine->accelerator.name) + " + " + machine->cpu.name;
      SANDWICH_ASSIGN_OR_RETURN(const std::string ours,
                                concurrencyOf(machine->accelerator.*ofTable,
                                              machine->cpu.*ofTable, limits[i],
                                              options));
      std::printf("%-28s %3.0f s  %3u + %2u (%4.1f%%: %4.1f%%) %s",
                  names.c_str(), limits[i], figures.alone[i], figures.added[i],
                  figures.improvement[i],
                  percent(figures.added[i], figures.alone[i]), ours.c_str());
      if (fitted) {
        SANDWICH_ASSIGN_OR_RETURN(const std::string byFit,
                                  concurrencyOf(machine->accelerator.fitted,
                                                machine->cpu.fitted, limits[i],
                                                options));
        std::printf(" %s", byFit.c_str());
      }
      std::printf("\n");
    }
  std::printf("In brackets: the improvement; of the paper as printed, and as "
              "its concurrencies make it.\nBehind: queries within the limit "
              "where so many come at once.\n");
  return {};
}

Status benchmark::printTable1(const ExperimentOptions &options) {
  return printConcurrencies("Table I: queries at a time, bge",
                            &PaperMachine::bge, &PaperDevice::ofTable1, true,
                            options);
}

Status benchmark::printTable2(const ExperimentOptions &options) {
  return printConcurrencies("Table II: queries at a time, jina",
                            &PaperMachine::jina, &PaperDevice::ofTable2, false,
                            options);
}

Status benchmark::printTable3(const ExperimentOptions &options) {
  std::printf("Table III: depths by the line of figure 4 (profiles); the paper "
              "tells no profiles\n%-5s %-15s %22s %22s %13s %10s\n",
              "limit", "device", "regression", "stress test, its step",
              "step 1", "tuned");
  for (size_t i = 0; i < limits.size(); ++i)
    for (const PaperMachine *machine : {&gpuMachine, &npuMachine}) {
      const std::vector<const PaperDevice *> pair = {&machine->accelerator,
                                                     &machine->cpu};
      std::vector<SimulatedDeviceModel> devices;
      for (const PaperDevice *device : pair)
        devices.push_back(makeDevice(device->fitted, options));
      SANDWICH_ASSIGN_OR_RETURN(const DepthEstimate depths,
                                estimateDepths(devices, limits[i], options));
      size_t regressions = 0, coarse = 0, fine = 0;
      for (size_t j = 0; j < pair.size(); ++j) {
        const PaperDepths &paper = pair[j]->depths;
        const DeviceDepth &ours = depths.devices[j];
        SANDWICH_ASSIGN_OR_RETURN(
            const StressResult stepped,
            stress(devices[j], limits[i], pair[j]->step, options));
        SANDWICH_ASSIGN_OR_RETURN(const StressResult single,
                                  stress(devices[j], limits[i], 1, options));
        regressions += ours.profiles;
        coarse += stepped.profiles;
        fine += single.profiles;
        std::printf("%3.0f s %-15s paper %3u, %3u (%3zu) paper %3u, %3u (%3zu) "
                    "      %3u (%3zu) %3u, %3u\n",
                    limits[i], pair[j]->name, paper.regression[i],
                    ours.estimated, ours.profiles, paper.stressTest[i],
                    stepped.depth, stepped.profiles, single.depth,
                    single.profiles, paper.tuned[i], ours.depth);
      }
      std::printf("      both: %zu profiles and %zu of both at once; stress "
                  "tests %zu, with step 1 %zu: %.1f and %.1f times as many\n",
                  regressions, depths.tuningProfiles, coarse, fine,
                  static_cast<double>(coarse) /
                      static_cast<double>(regressions),
                  static_cast<double>(fine) / static_cast<double>(regressions));
    }
  return {};
}

/// Plain least squares, as the paper has it.
static LatencyLine leastSquares(const std::vector<ProfilePoint> &points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const ProfilePoint &point : points) {
    ++n;
    x += point.concurrency;
    y += point.seconds;
    xx += static_cast<double>(point.concurrency) * point.concurrency;
    xy += point.concurrency * point.seconds;
  }
  const double alpha = (n * xy - x * y) / (n * xx - x * x);
  return {alpha, (y - alpha * x) / n};
}

Status benchmark::printFigure4(const ExperimentOptions &options) {
  // The paper tells of many outliers on one machine, not of how many or how far
  // they are off.
  constexpr double outliers = 0.15, farOff = 1.6;
  std::printf("Figure 4: lines through stress tests up to 2 s; on the NPU "
              "machine %.0f%% of the profiles take %.1f times as long\n"
              "%-15s %7s %20s %20s %28s\n",
              100 * outliers, farOff, "device", "points", "alpha, beta of it",
              "least squares", "robust (left out), R^2");
  std::vector<double> alphas;
  for (const PaperMachine *machine : {&gpuMachine, &npuMachine})
    for (const PaperDevice *device : {&machine->accelerator, &machine->cpu}) {
      SimulatedDeviceModel model = makeDevice(device->fitted, options);
      if (machine == &npuMachine) {
        model.slowProbability = outliers;
        model.slowFactor = farOff;
      }
      SimulatedDevice simulated(model, options.seed);
      std::vector<ProfilePoint> points;
      const uint32_t step = device->step == 8 ? 8 : 1;
      for (uint32_t count = step; device->fitted.seconds(count) <= limits[1];
           count += step)
        points.push_back({count, simulated.run(count).seconds});
      SANDWICH_ASSIGN_OR_RETURN(const LatencyFit fit,
                                LatencyFit::create(points));
      const LatencyLine plain = leastSquares(points);
      std::printf("%-15s %7zu %8.2f ms %6.3f s %8.2f ms %6.3f s %8.2f ms "
                  "%6.3f s (%zu) %.3f\n",
                  device->name, points.size(), 1e3 * device->fitted.alpha,
                  device->beta, 1e3 * plain.alpha, plain.beta,
                  1e3 * fit.line.alpha, fit.line.beta, fit.outliers.size(),
                  fit.rSquared);
      alphas.push_back(fit.line.alpha);
    }
  std::printf("ratios of alphas: paper %.2f and %.2f, ours %.2f and %.2f\n",
              gpuMachine.ratio, npuMachine.ratio, alphas[0] / alphas[1],
              alphas[2] / alphas[3]);
  return {};
}

/// A row of figures 5 and 6: for each limit the queries at a time of the
/// accelerator and what the CPU adds.
static Status printScaled(const char *label, const LatencyLine &accelerator,
                          const LatencyLine &cpu,
                          const ExperimentOptions &options) {
  std::printf("%-12s", label);
  for (const double limit : limits) {
    SANDWICH_ASSIGN_OR_RETURN(const std::string cell,
                              concurrencyOf(accelerator, cpu, limit, options));
    std::printf("   %s", cell.c_str());
  }
  std::printf("\n");
  return {};
}

Status benchmark::printFigure5(const ExperimentOptions &options) {
  std::printf("Figure 5: queries at a time by their length, Tesla V100 + Xeon "
              "E5 2690, lines of table I\n%-12s   %-20s   %s\n",
              "tokens", "1 s", "2 s");
  for (const int tokens : {75, 100, 150, 200, 250, 300, 400, 500}) {
    auto longer = [&](LatencyLine line) {
      line.alpha *= alphaGrowth(tokens);
      return line;
    };
    SANDWICH_RETURN_IF_ERROR(printScaled(
        std::to_string(tokens).c_str(), longer(gpuMachine.accelerator.ofTable1),
        longer(gpuMachine.cpu.ofTable1), options));
  }
  std::printf("The paper's text: at 500 tokens nothing is added within 1 s, 2 "
              "(20%%) within 2 s.\n");
  return {};
}

Status benchmark::printFigure6(const ExperimentOptions &options) {
  std::printf(
      "Figure 6: queries at a time by cores, Tesla V100 + Xeon E5 2690, "
      "lines of table I\n%-12s   %-20s   %s\n",
      "cores", "1 s", "2 s");
  for (int cores = 48; cores >= 24; cores -= 4) {
    LatencyLine cpu = gpuMachine.cpu.ofTable1;
    const double slower = std::pow(usualCores / cores, corePower);
    cpu.alpha *= slower;
    cpu.beta *= slower;
    SANDWICH_RETURN_IF_ERROR(printScaled(std::to_string(cores).c_str(),
                                         gpuMachine.accelerator.ofTable1, cpu,
                                         options));
  }
  std::printf("The paper's text: fewer than 44 cores add nothing within 1 s, "
              "fewer than 36 nothing within 2 s.\n");
  return {};
}
