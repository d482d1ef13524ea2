//===- ProfileTable.cpp - Where the time of a phase goes ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProfileTable.h"

#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

using namespace sandwich;

/// A share in percent, or 0 of nothing.
static double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// What `amount` bytes or operations in `seconds` are in billions a second, or
/// nothing where it is not known.
static std::optional<double> rate(double amount, double seconds) {
  if (amount <= 0 || seconds <= 0)
    return std::nullopt;
  return amount / seconds / 1e9;
}

/// The operations, those that took longest first.
static std::vector<OperationProfile> byTime(const PhaseProfile &profile) {
  std::vector<OperationProfile> operations = profile.operations;
  std::ranges::stable_sort(operations, std::greater(),
                           &OperationProfile::seconds);
  return operations;
}

/// One line of the table: name, calls, milliseconds, share and the rates that
/// are known.
static std::string profileLine(const std::string &name,
                               const std::string &calls, double seconds,
                               const PhaseProfile &profile,
                               std::optional<double> gigabytes = {},
                               std::optional<double> gigaflops = {}) {
  char line[160];
  std::snprintf(line, sizeof(line), " %8s %12.3f %9.3f %7.2f", calls.c_str(),
                1e3 * seconds,
                1e3 * seconds / static_cast<double>(profile.steps),
                percent(seconds, profile.seconds));
  constexpr size_t nameColumns = 48;
  std::string text = "  " + name;
  text.resize(std::max(text.size(), nameColumns), ' ');
  text += line;
  for (std::optional<double> number : {gigabytes, gigaflops}) {
    std::snprintf(line, sizeof(line), " %9.1f", number.value_or(0));
    text += number ? line : "         -";
  }
  return text + "\n";
}

Status tool::printProfile(const PhaseProfile &profile) {
  char line[160];
  std::snprintf(line, sizeof(line), "  %-46s %8s %12s %9s %7s %9s %9s\n",
                profile.phase.c_str(), "calls", "total ms", "ms/step",
                "share %", "GB/s", "GFLOP/s");
  std::string text = line;
  for (const OperationProfile &operation : byTime(profile))
    text += profileLine(operation.name, std::to_string(operation.calls),
                        operation.seconds, profile,
                        rate(operation.bytes, operation.seconds),
                        rate(operation.flops, operation.seconds));
  text += profileLine("other", "-", profile.otherSeconds(), profile);
  text += profileLine("step", std::to_string(profile.steps), profile.seconds,
                      profile);
  return writeStandardOutput(text);
}

Json tool::toJson(const PhaseProfile &profile) {
  Json operations = Json::array();
  for (const OperationProfile &operation : byTime(profile)) {
    Json entry = {{"operation", operation.name},
                  {"calls", operation.calls},
                  {"ms", 1e3 * operation.seconds},
                  {"share", percent(operation.seconds, profile.seconds)}};
    if (auto gigabytes = rate(operation.bytes, operation.seconds))
      entry["gb_per_second"] = *gigabytes;
    if (auto gigaflops = rate(operation.flops, operation.seconds))
      entry["gflop_per_second"] = *gigaflops;
    operations.push_back(entry);
  }
  return {{"phase", profile.phase},
          {"steps", profile.steps},
          {"ms", 1e3 * profile.seconds},
          {"operations", operations},
          {"other",
           {{"ms", 1e3 * profile.otherSeconds()},
            {"share", percent(profile.otherSeconds(), profile.seconds)}}}};
}
