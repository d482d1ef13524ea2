//===- HandoffMeasurement.cpp - Cache lines from core to core -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuringTools.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <atomic>

using namespace sandwich;
using namespace sandwich::measuring;

namespace {

/// A cache line that two threads write in turn.
struct PingPong {
  static constexpr uint32_t returns = 1000;

  PhaseTeam &team;
  /// Pairs of lines are fetched together.
  alignas(128) std::atomic<uint32_t> ball{0};
  alignas(128) double seconds = 0;

  void play(int32_t thread) {
    // Waking up the second thread is not measured.
    team.barrier();
    Clock::time_point begin = Clock::now();
    // No pause while waiting: it would take longer than the line does.
    for (uint32_t i = 0; i < returns; ++i) {
      const uint32_t thrown = 2 * i + 1;
      if (thread == 0)
        ball.store(thrown, std::memory_order_release);
      const uint32_t awaited = thread == 0 ? thrown + 1 : thrown;
      while (ball.load(std::memory_order_acquire) != awaited) {
      }
      if (thread == 1)
        ball.store(thrown + 1, std::memory_order_release);
    }
    if (thread == 0)
      seconds = secondsSince(begin) / (2 * returns);
  }
};

} // namespace

/// Adds a pair for each kind in `node` that has none yet.
static void addPairs(const MachineNode &node, std::vector<CpuPair> &pairs) {
  if (node.children.size() > 1 &&
      std::ranges::find(pairs, node.kind, &CpuPair::kind) == pairs.end())
    pairs.push_back({node.kind, cpuAtEnd(node.children.front(), false),
                     cpuAtEnd(node.children.back(), true)});
  for (const MachineNode &child : node.children)
    addPairs(child, pairs);
}

std::vector<CpuPair> sandwich::handoffPairs(const MachineNode &machine) {
  std::vector<CpuPair> pairs;
  addPairs(machine, pairs);
  return pairs;
}

Result<double> sandwich::measureHandoff(unsigned first, unsigned second,
                                        const MeasurementProgress &progress) {
  if (first == second)
    return makeError("CPU ", first, " hands nothing over to itself");
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            createPinnedTeam({first, second}));
  constexpr size_t fewestRounds = 5, mostRounds = 101;
  constexpr double mostSeconds = 0.5;
  Clock::time_point begin = Clock::now();
  std::vector<double> rounds;
  while (rounds.size() < fewestRounds ||
         (rounds.size() < mostRounds && secondsSince(begin) < mostSeconds)) {
    SANDWICH_RETURN_IF_ERROR(
        report(progress, "handing cache lines over",
               static_cast<double>(rounds.size()) / mostRounds));
    PingPong game{*team};
    team->run(
        2,
        [](void *context, int32_t thread) {
          static_cast<PingPong *>(context)->play(thread);
        },
        &game);
    rounds.push_back(game.seconds);
  }
  return median(std::move(rounds));
}
