//===- HandoffMeasurement.cpp - Cache lines from core to core -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuringTools.h"
#include "PingPong.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::measuring;

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
    struct Round {
      PhaseTeam &team;
      PingPong game;
    } round{*team, {}};
    team->run(
        2,
        [](void *context, int32_t thread) {
          auto &[team, game] = *static_cast<Round *>(context);
          // Waking up the second thread is not measured.
          team.barrier();
          game.play(thread);
        },
        &round);
    rounds.push_back(round.game.seconds);
  }
  return median(std::move(rounds));
}
