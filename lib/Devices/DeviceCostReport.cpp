//===- DeviceCostReport.cpp - Costs for people and programs ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceCostReport.h"

#include <cstdarg>
#include <cstdio>

using namespace sandwich;

[[gnu::format(printf, 1, 2)]] static std::string print(const char *format,
                                                       ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  return line;
}

static std::string describeInstance(const PricedDevice &device,
                                    const InstanceCapacity &capacity) {
  return print("%.40s: %u queries at a time in %.3f s, %.4g a second; %llu "
               "more batches in the time a query may take\n",
               device.name.c_str(), capacity.depth, capacity.batchSeconds,
               capacity.queriesPerSecond,
               static_cast<unsigned long long>(capacity.waitingBatches));
}

static std::string describeDeployment(const char *how,
                                      const Deployment &deployment,
                                      const std::string &currency) {
  return print("  %-13s %8llu devices, %12.2f %.20s\n", how,
               static_cast<unsigned long long>(deployment.devices),
               deployment.cost, currency.c_str());
}

static std::string describeComparison(const char *title,
                                      const CostComparison &comparison,
                                      const std::string &currency) {
  return print("%s of %.6g queries\n", title, comparison.queries) +
         describeDeployment("alone", comparison.alone, currency) +
         describeDeployment("with overflow", comparison.withOverflow,
                            currency) +
         print("  saved         %.1f%%; %.1f%% where parts of devices could be "
               "bought, as overflow adds %.1f%%\n",
               100 * comparison.savedShare(),
               100 * comparison.idealSavedShare(), 100 * comparison.gain);
}

std::string sandwich::describeCost(const CostDescription &description,
                                   const DeviceCost &cost) {
  std::string text =
      print("SLO of %g s\n", description.sloSeconds) +
      describeInstance(description.accelerator, cost.accelerator);
  if (cost.cpuIsTooSlow)
    text +=
        print("%.40s: a single query takes %.3f s, so that there is no "
              "overflow\n",
              description.cpu.name.c_str(), description.cpu.line->seconds(1));
  else if (cost.cpu.depth > 0)
    text += describeInstance(description.cpu, cost.cpu);
  else
    text += "cpu: not told of, so that there is no overflow\n";
  return text +
         describeComparison("by the peak", cost.byPeak, description.currency) +
         describeComparison("by the average, a second,", cost.byAverage,
                            description.currency);
}

static Json toJson(const InstanceCapacity &capacity) {
  return {{"concurrency", capacity.depth},
          {"batch_seconds", capacity.batchSeconds},
          {"queries_per_second", capacity.queriesPerSecond},
          {"waiting_batches", capacity.waitingBatches}};
}

static Json toJson(const Deployment &deployment) {
  return {{"instances", deployment.instances},
          {"devices", deployment.devices},
          {"machines", deployment.machines},
          {"cost", deployment.cost}};
}

static Json toJson(const CostComparison &comparison) {
  return {{"queries", comparison.queries},
          {"alone", toJson(comparison.alone)},
          {"with_overflow", toJson(comparison.withOverflow)},
          {"gain", comparison.gain},
          {"saved_share", comparison.savedShare()},
          {"ideal_saved_share", comparison.idealSavedShare()}};
}

Json sandwich::costToJson(const CostDescription &description,
                          const DeviceCost &cost) {
  Json json = {{"slo_seconds", description.sloSeconds},
               {"accelerator", toJson(cost.accelerator)},
               {"cpu", toJson(cost.cpu)},
               {"overflow", cost.cpu.depth > 0},
               {"by_peak", toJson(cost.byPeak)},
               {"by_average", toJson(cost.byAverage)},
               {"currency", description.currency}};
  json["accelerator"]["name"] = description.accelerator.name;
  json["cpu"]["name"] = description.cpu.name;
  return json;
}
