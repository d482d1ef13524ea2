//===- MachineDescriptionFuzzer.cpp - Any bytes as machine parameters -----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/MemoryFile.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  prepareStandardStreams();
  return 0;
}

/// Two sockets with two nodes each, and a second memory beside one of these.
static Machine makeMachine() {
  Result<Machine> machine =
      readMachineTopology("synthetic:package:2 numa:2 l3:2 core:2 pu:1");
  check(bool(machine));
  MachineNode &beside = machine->memories.emplace_back();
  beside.kind = "numa";
  beside.index = 4;
  beside.besideNodes = {1};
  return *std::move(machine);
}

/// A file is refused with a reason, or it describes the machine: what it says
/// is read again as it is written, and predicts times that are times.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Machine machine = makeMachine();
  static const Target target = *getTarget("x86-64-avx2");
  const int file = createMemoryFile("machine.json");
  check(file >= 0);
  check(bool(fillAndSeal(file, {reinterpret_cast<const char *>(data), size})));
  Result<MachineDescription> description = readMachineDescription(
      "/proc/self/fd/" + std::to_string(file), machine, target);
  ::close(file);
  if (!description) {
    check(!description.error().message.empty());
    return 0;
  }
  const Json written = toJson(*description);
  Result<MachineDescription> again =
      machineDescriptionFromJson(written, describeMachine(machine, target));
  check(bool(again));
  // Units round the last digit once.
  const Json twice = toJson(*again);
  Result<MachineDescription> third =
      machineDescriptionFromJson(twice, describeMachine(machine, target));
  check(bool(third) && twice.size() == written.size());
  Result<LatencyModel> model = LatencyModel::create(
      machine.root, *description, MatrixElement::BF16, machine.memories);
  if (!model) {
    check(!model.error().message.empty());
    return 0;
  }
  Result<TeamSpeed> team = model->speedOf({{0, 1, 2, 3}, {4, 5}});
  check(bool(team));
  for (double value : {team->flopsPerSecond, team->bytesPerSecond,
                       team->interference, team->cacheSlowdown})
    check(value > 0 && std::isfinite(value));
  // Sums of differences round.
  constexpr double rounding = 1e-6;
  check(team->barrierSeconds > -rounding && team->allReduceSeconds > -rounding);
  return 0;
}
