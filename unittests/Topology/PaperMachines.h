//===- PaperMachines.h - The machines of the Sandwich paper -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Topologies as hwloc shows them, with parameters from Inputs/. Where those
/// come from is told in docs/RationaleTopoTree.md.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_TOPOLOGY_PAPERMACHINES_H
#define SANDWICH_UNITTESTS_TOPOLOGY_PAPERMACHINES_H

#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <cstdio>
#include <cstdlib>

namespace sandwich::test {

struct PaperMachine {
  MachineNode topology;
  MachineDescription description;
};

inline PaperMachine makePaperMachine(const std::string &topology,
                                     const std::string &name,
                                     const std::string &target) {
  Result<Machine> machine = readMachineTopology("synthetic:" + topology);
  auto fail = [](const Error &error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::abort();
  };
  if (!machine)
    fail(machine.error());
  Result<MachineDescription> description = readMachineDescription(
      SANDWICH_TEST_INPUTS "/" + name, *machine, *getTarget(target));
  if (!description)
    fail(description.error());
  return {machine->root, *description};
}

/// 8 NUMA nodes of 24 cores; clusters of four are hidden.
inline PaperMachine kunpeng920() {
  return makePaperMachine("pack:4 die:2 [numa(memory=68719476736)] "
                          "l3:1(size=25165824) l2:24(size=524288) "
                          "l1d:1(size=65536) core:1 pu:1",
                          "kunpeng920x4.json", "aarch64-neon");
}

/// 2 NUMA nodes of 64 cores, one L3 for each four, two threads each.
inline PaperMachine epyc7H12() {
  return makePaperMachine("pack:2 [numa(memory=274877906944)] "
                          "l3:16(size=16777216) l2:4(size=524288) "
                          "l1d:1(size=32768) core:1 "
                          "pu:2(indexes=2*128:128*1)",
                          "epyc7h12x2.json", "x86-64-avx2");
}

/// 2 NUMA nodes of 20 cores with two threads each.
inline PaperMachine xeon6230() {
  return makePaperMachine("pack:2 [numa(memory=103079215104)] "
                          "l3:1(size=28835840) l2:20(size=1048576) "
                          "l1d:1(size=32768) core:1 pu:2(indexes=2*40:40*1)",
                          "xeon6230x2.json", "x86-64-avx512");
}

/// Sheared-LLaMA-1.3B.
inline ModelWork llama1B(double bytesPerWeight) {
  ModelWork work;
  work.layers = 24;
  work.hiddenSize = 2048;
  work.intermediateSize = 5504;
  work.queryHeads = 16;
  work.keyValueHeads = 16;
  work.headDim = 128;
  work.vocabulary = 32000;
  work.bytesPerWeight = bytesPerWeight;
  return work;
}

/// Llama-160M-Chat.
inline ModelWork llama160M(double bytesPerWeight) {
  ModelWork work;
  work.layers = 12;
  work.hiddenSize = 768;
  work.intermediateSize = 3072;
  work.queryHeads = 12;
  work.keyValueHeads = 12;
  work.headDim = 64;
  work.vocabulary = 32000;
  work.bytesPerWeight = bytesPerWeight;
  return work;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_TOPOLOGY_PAPERMACHINES_H
