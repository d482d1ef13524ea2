//===- ConfigurationClass.cpp - Plans that are equal for people -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/ConfigurationClass.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace sandwich;

bool sandwich::areEqualPredictions(double a, double b) {
  // Infinite ones are equal to each other, and to no finite one.
  return a == b || (std::isfinite(a) && std::isfinite(b) &&
                    std::abs(a - b) <= equalPredictions * std::max(a, b));
}

std::string sandwich::limitOf(const TimeParts &parts) {
  auto longest = std::ranges::max_element(
      parts, {}, [](const auto &part) { return part.second; });
  return longest == parts.end() ? std::string() : longest->first;
}

std::string_view EqualConfigurations::differBy() const {
  if (byStride > 0 && byNodes > 0)
    return "stride and NUMA nodes";
  if (byNodes > 0)
    return "NUMA nodes";
  return byStride > 0 ? "stride" : "";
}

std::string_view sandwich::name(DropReason reason) {
  switch (reason) {
  case DropReason::OperatorLimits:
    return "operator_limits";
  case DropReason::NoImprovement:
    return "no_improvement";
  case DropReason::CannotRun:
    return "cannot_run";
  case DropReason::BelowTop:
    return "below_top";
  }
  return "";
}

DroppedClass::DroppedClass(const ConfigurationClass &dropped, DropReason reason,
                           std::string text)
    : reason(reason), text(std::move(text)), shape(dropped.shape()),
      derivation(dropped.derivation), depth(dropped.depth),
      predictedMs(dropped.predictedMs), equal(dropped.equal),
      time(dropped.time) {}

static void addTo(Json &json, const EqualConfigurations &equal,
                  const PredictedTime &time) {
  json["equal"] = equal.count();
  json["equal_by"] = equal.differBy();
  if (time.prefill.empty() && time.decode.empty())
    return;
  json["limits"] = {{"prefill", limitOf(time.prefill)},
                    {"decode", limitOf(time.decode)}};
  json["time_ms"] = {{"prefill", Json(time.prefill)},
                     {"decode", Json(time.decode)}};
}

Json sandwich::toJson(const ConfigurationClass &configuration) {
  Json json = toJson(static_cast<const ServiceConfiguration &>(configuration));
  addTo(json, configuration.equal, configuration.time);
  return json;
}

Json sandwich::toJson(const DroppedClass &dropped) {
  Json json = {{"derivation", dropped.derivation},
               {"depth", dropped.depth},
               {"reason", dropped.text},
               {"processes", dropped.shape.processes},
               {"prefill_cores", dropped.shape.prefillCores},
               {"decode_cores", dropped.shape.decodeCores}};
  if (dropped.shape.instances > 1)
    json["instances"] = dropped.shape.instances;
  if (std::isfinite(dropped.predictedMs))
    json["predicted_ms"] = dropped.predictedMs;
  addTo(json, dropped.equal, dropped.time);
  return json;
}
