//===- TeamStep.h - A step whose threads are a team's -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_TEAMSTEP_H
#define SANDWICH_RUNTIME_TEAMS_TEAMSTEP_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"

namespace sandwich {

/// Has the threads that run `step` wait for each other as threads of `team`.
inline void setTeam(SandwichStep &step, PhaseTeam &team) {
  step.team = &team;
  step.barrier = [](void *team) { static_cast<PhaseTeam *>(team)->barrier(); };
}

/// Calls `function` with `step` on the first `threads` threads of `team`.
inline void runOnTeam(PhaseTeam &team, unsigned threads,
                      SandwichPhaseFunction function,
                      const SandwichStep &step) {
  struct Call {
    SandwichPhaseFunction function;
    const SandwichStep &step;
  } call{function, step};
  team.run(
      threads,
      [](void *context, int32_t thread) {
        const auto &call = *static_cast<const Call *>(context);
        call.function(&call.step, thread);
      },
      &call);
}

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_TEAMSTEP_H
