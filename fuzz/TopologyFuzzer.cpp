//===- TopologyFuzzer.cpp - Any bytes as a machine's XML ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Process.h"
#include "sandwich/Topology/Drawing/MachineDrawing.h"
#include "sandwich/Topology/Trees/SymmetricPart.h"

#include <cstdlib>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

/// `node` without what NUMA nodes of a symmetric part may differ in
/// unmentioned.
static MachineNode withoutMemory(MachineNode node) {
  if (node.kind == "numa")
    node.bytes = node.bandwidth = node.latency = 0;
  for (MachineNode &child : node.children)
    child = withoutMemory(std::move(child));
  return node;
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  prepareStandardStreams();
  return 0;
}

/// A file is refused with a reason, or it is a machine with cores, whose
/// symmetric part and drawings exist.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto machine = readMachineXml(
      "input", std::string(reinterpret_cast<const char *>(data), size));
  if (!machine) {
    check(!machine.error().message.empty());
    return 0;
  }
  uint64_t cores = countParts(machine->root, "core");
  check(cores > 0 && countParts(machine->root, "cpu") >= cores);
  auto part = largestSymmetricPart(machine->root);
  check(bool(part));
  uint64_t kept = countParts(part->root, "core");
  check(kept > 0 && kept <= cores);
  // What is left out is said; and if nothing is, nothing is said but of memory.
  const bool same =
      toJson(withoutMemory(part->root)) == toJson(withoutMemory(machine->root));
  check(same || !part->leftOut.empty());
  check(part->leftOut.empty() || toJson(part->root) != toJson(machine->root));
  check(!drawText(*machine).empty());
  check(drawSvg(*machine).ends_with("</svg>\n"));
  return 0;
}
