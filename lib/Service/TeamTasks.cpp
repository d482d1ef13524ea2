//===- TeamTasks.cpp - Tasks for the threads of a team --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TeamTasks.h"

#include <algorithm>
#include <exception>
#include <mutex>

using namespace sandwich;

static void runOnTeam(PhaseTeam &team, size_t count,
                      const std::function<void(size_t)> &task) {
  struct Tasks {
    size_t count;
    size_t threads;
    const std::function<void(size_t)> &task;
    std::mutex mutex = {};
    std::exception_ptr failure = {};
  } tasks{count, std::min<size_t>(count, team.size()), task};
  team.run(
      static_cast<unsigned>(tasks.threads),
      [](void *context, int32_t thread) {
        auto &own = *static_cast<Tasks *>(context);
        // No exception may leave a thread of the team.
        try {
          for (auto i = static_cast<size_t>(thread); i < own.count;
               i += own.threads)
            own.task(i);
        } catch (...) {
          std::lock_guard lock(own.mutex);
          own.failure = std::current_exception();
        }
      },
      &tasks);
  if (tasks.failure)
    std::rethrow_exception(tasks.failure);
}

ParallelFor sandwich::parallelOn(PhaseTeam &team) {
  return [&team](size_t count, const std::function<void(size_t)> &task) {
    runOnTeam(team, count, task);
  };
}
