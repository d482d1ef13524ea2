//===- ServingSimulation.cpp - How long requests take ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/ServingSimulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <vector>

using namespace sandwich;

double sandwich::meanLatency(const StepTimes &times, const ServingTrace &trace,
                             int64_t maxBatch) {
  struct Sequence {
    double arrival;
    int64_t position;
    int64_t left;
  };
  std::vector<Sequence> generating;
  double now = 0;
  double total = 0;
  size_t next = 0;
  while (next < trace.size() || !generating.empty()) {
    if (!std::isfinite(now))
      return std::numeric_limits<double>::infinity();
    if (generating.empty() && trace[next].arrivalSeconds)
      now = std::max(now, *trace[next].arrivalSeconds);
    auto waiting = [&] {
      if (next == trace.size() ||
          static_cast<int64_t>(generating.size()) >= maxBatch)
        return false;
      const std::optional<double> &arrival = trace[next].arrivalSeconds;
      return arrival ? *arrival <= now : generating.empty();
    };
    while (waiting()) {
      const ServingRequest &request = trace[next++];
      const double arrival = request.arrivalSeconds.value_or(now);
      now += times.promptSeconds(request.promptTokens);
      // The prompt's last logits are the first token.
      if (request.outputTokens > 1)
        generating.push_back(
            {arrival, request.promptTokens + 1, request.outputTokens - 1});
      else
        total += now - arrival;
    }
    if (generating.empty())
      continue;
    // As many steps as nobody ends or comes in.
    int64_t steps = std::ranges::min(generating, {}, &Sequence::left).left;
    const auto sequences = static_cast<int64_t>(generating.size());
    int64_t positions = 0;
    for (const Sequence &sequence : generating)
      positions += sequence.position;
    if (next < trace.size() && trace[next].arrivalSeconds &&
        sequences < maxBatch)
      steps = *std::ranges::partition_point(
          std::views::iota(int64_t{1}, steps), [&](int64_t count) {
            return now + times.decodeSeconds(sequences, positions, count) <
                   *trace[next].arrivalSeconds;
          });
    now += times.decodeSeconds(sequences, positions, steps);
    for (Sequence &sequence : generating) {
      sequence.position += steps;
      sequence.left -= steps;
      if (sequence.left == 0)
        total += now - sequence.arrival;
    }
    std::erase_if(generating,
                  [](const Sequence &sequence) { return sequence.left == 0; });
  }
  return trace.empty() ? 0 : total / static_cast<double>(trace.size());
}
