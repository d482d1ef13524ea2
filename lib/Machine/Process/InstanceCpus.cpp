//===- InstanceCpus.cpp - Cores beside an accelerator ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/InstanceCpus.h"

#include "sandwich/Machine/Process/MemoryBinding.h"

#include <algorithm>
#include <map>

using namespace sandwich;

std::optional<unsigned> sandwich::findNodeOfCpu(unsigned cpu) {
  return numaNodeOf(std::span(&cpu, 1));
}

unsigned sandwich::reservedCores(unsigned cores) {
  return cores <= 1 ? 0 : std::max(1U, cores / 4);
}

std::vector<unsigned> sandwich::chooseInstanceCpus(const CpuBudget &budget,
                                                   unsigned threads,
                                                   unsigned reserved,
                                                   const NodeOfCpu &nodeOf) {
  // The first CPU of every core.
  const auto cores = std::min<size_t>(budget.allowedCores, budget.cpus.size());
  std::vector<unsigned> cpus(budget.cpus.begin(),
                             budget.cpus.begin() +
                                 static_cast<std::ptrdiff_t>(cores));
  if (threads == 0 || threads + reserved > cores)
    return {};
  std::ranges::sort(cpus, std::greater());
  // The reserved ones are the first.
  cpus.resize(cores - reserved);
  std::map<unsigned, std::vector<unsigned>> nodes;
  for (unsigned cpu : cpus)
    if (const std::optional<unsigned> node = nodeOf(cpu))
      nodes[*node].push_back(cpu);
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (node->second.size() >= threads) {
      node->second.resize(threads);
      return node->second;
    }
  cpus.resize(threads);
  return cpus;
}
