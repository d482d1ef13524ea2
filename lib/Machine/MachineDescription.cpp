//===- MachineDescription.cpp - What is known of a machine ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineDescription.h"

#include "KnownProcessors.h"

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace sandwich;

const PartDescription &MachineDescription::node() const {
  static const PartDescription unlimited;
  for (const char *kind : {"numa", "machine"})
    if (auto part = parts.find(kind);
        part != parts.end() && std::isfinite(part->second.bytesPerSecond))
      return part->second;
  return unlimited;
}

bool MachineDescription::isKnown() const {
  // Those of single nodes are exceptions from that of all.
  const bool memory = node().bytesPerSecond.isKnown();
  const bool handoff = std::ranges::any_of(parts, [](const auto &part) {
    return part.second.handoffSeconds.isKnown();
  });
  return coreBytesPerSecond.isKnown() && memory && handoff;
}

/// Calls `visit` with each part of `kind` that holds no other of that kind.
template <typename Visit>
static bool forEachInnermost(const MachineNode &node, std::string_view kind,
                             const Visit &visit) {
  bool inside = false;
  for (const MachineNode &child : node.children)
    inside |= forEachInnermost(child, kind, visit);
  if (!inside && node.kind == kind)
    visit(node);
  return inside || node.kind == kind;
}

/// Cores of a part, those included that this process may not use. A CPU
/// outside any core is one.
static uint64_t countAllCores(const MachineNode &part) {
  if (part.coreCount > 0)
    return part.coreCount;
  const uint64_t cores = countParts(part, "core");
  return cores > 0 ? cores : countParts(part, "cpu");
}

namespace {

/// Whether integers have a rate of their own: those that AVX2 multiplies count
/// as f32, which is what AVX-512 without others multiplies many rows in.
bool hasIntegerRate(MatrixISA isa) {
  return multipliesIntegers(isa) && isa != MatrixISA::X86_AVX2_INT8;
}

/// Puts together what is known of one machine.
class Describer {
public:
  Describer(const Machine &machine, const Target &target)
      : machine(machine), generation(generationOf(target)),
        hasIntegers(std::ranges::any_of(target.matrixISAs, hasIntegerRate)),
        known(findKnownProcessor(machine.cpuModel)) {
    // What has the machine's memories, and how many cores the largest has.
    memoryKind = countParts(machine.root, "numa") > 0 ? "numa" : "machine";
    // Those count too whose cores this process may not use, but not what cores
    // have beside their own.
    nodes = static_cast<uint64_t>(
        std::ranges::count_if(machine.memories, [](const MachineNode &memory) {
          return memory.kind == "numa" && memory.besideNodes.empty();
        }));
    forEachInnermost(machine.root, memoryKind, [&](const MachineNode &node) {
      ++nodes;
      coresOfNode = std::max(coresOfNode, countAllCores(node));
      forEachInnermost(node, "l3", [&](const MachineNode &slice) {
        coresOfSlice = std::max(coresOfSlice, countAllCores(slice));
      });
    });
  }

  MachineDescription describe() {
    describeCore();
    describeMemory();
    describeCaches();
    describeHandoffs();
    describeLinks();
    return description;
  }

private:
  MachineValue ofGeneration(double value) const {
    return {value, ValueOrigin::Derived,
            "usual for " + std::string(generation.name)};
  }
  MachineValue published(double value) const {
    return {value, ValueOrigin::Derived,
            std::string(known->name) + ": " + std::string(known->source)};
  }
  /// A published figure, else that of the generation.
  MachineValue either(double KnownProcessor::*figure, double unit,
                      double usual) const {
    return known && known->*figure > 0 ? published(known->*figure * unit)
                                       : ofGeneration(usual * unit);
  }
  /// Whether a node has several L3s.
  bool hasSlices() const {
    return coresOfSlice > 0 && coresOfSlice < coresOfNode;
  }
  static MachineValue assumed(double value) {
    return {value, ValueOrigin::Assumed, "of no machine in particular"};
  }

  void describeCore() {
    const double cycles = generation.gigahertz * giga;
    description.coreCyclesPerSecond = ofGeneration(cycles);
    description.coreFlopsPerSecond.f32 =
        ofGeneration(cycles * generation.f32PerCycle);
    description.coreFlopsPerSecond.bf16 =
        ofGeneration(cycles * generation.bf16PerCycle);
    if (hasIntegers)
      description.coreFlopsPerSecond.int8 =
          ofGeneration(cycles * generation.int8PerCycle);
    description.coreBytesPerSecond =
        either(&KnownProcessor::coreGigabytes, giga, generation.coreGigabytes);
    description.memoryLatencySeconds =
        either(&KnownProcessor::latencyNanoseconds, nano,
               generation.latencyNanoseconds);
  }

  void describeMemory() {
    PartDescription &memory = description.parts[memoryKind];
    if (known) {
      const uint64_t sockets =
          std::max<uint64_t>(countParts(machine.root, "package"), 1);
      const double nodesOfSocket =
          static_cast<double>(std::max(nodes / sockets, uint64_t{1}));
      constexpr double mega = 1e6, bytesPerTransfer = 8;
      memory.bytesPerSecond =
          published(known->channels * known->megatransfers * mega *
                    bytesPerTransfer * known->readShare / nodesOfSocket);
      std::ostringstream source;
      source << ": " << known->readShare * 100 << "% of "
             << known->channels / nodesOfSocket << " channels at "
             << known->megatransfers << " MT/s";
      memory.bytesPerSecond.source += source.str();
    } else {
      memory.bytesPerSecond =
          ofGeneration(giga * std::max(generation.nodeGigabytes,
                                       generation.gigabytesPerCore *
                                           static_cast<double>(coresOfNode)));
      memory.bytesPerSecond.source += ", by cores of a node";
    }
    const auto addFirmware = [](const MachineNode &node, auto &memories) {
      if (node.bandwidth > 0 && node.index >= 0)
        memories[static_cast<unsigned>(node.index)] = {
            static_cast<double>(node.bandwidth), ValueOrigin::Derived,
            "the firmware's table of memory attributes (HMAT)"};
    };
    forEachInnermost(machine.root, "numa", [&](const MachineNode &node) {
      addFirmware(node, description.memories);
    });
    for (const MachineNode &memory : machine.memories)
      if (!memory.besideNodes.empty())
        addFirmware(memory, description.besideMemories);
  }

  void describeCaches() {
    description.coreL2BytesPerSecond = assumed(200 * giga);
    description.coreL3BytesPerSecond = assumed(100 * giga);
    // A socket with one L3 gives its cores what the memory has; the links of
    // several are made for a part of it.
    if (!hasSlices())
      return;
    constexpr double usualOfSliceCore = 7;
    description.parts["l3"].bytesPerSecond =
        either(&KnownProcessor::sliceGigabytes, giga,
               std::max(usualOfSliceCore * static_cast<double>(coresOfSlice),
                        1.3 * description.coreBytesPerSecond / giga));
  }

  void describeHandoffs() {
    const auto describe = [&](const char *kind, double KnownProcessor::*figure,
                              double usual) {
      if (countParts(machine.root, kind) == 0)
        return;
      description.parts[kind].handoffSeconds =
          known && figure && known->*figure > 0
              ? published(known->*figure * nano)
              : assumed(usual * nano);
    };
    // Low ones, as they are what lets cores sleep.
    describe("core", nullptr, 10);
    describe("l2", nullptr, 20);
    if (hasSlices())
      describe("l3", &KnownProcessor::sliceHandoff, 25);
    describe("numa", &KnownProcessor::packageHandoff, 50);
    describe("package", &KnownProcessor::packageHandoff, 60);
    describe("machine", &KnownProcessor::machineHandoff, 120);
  }

  void describeLinks() {
    constexpr double usualRemoteShare = 0.7;
    description.remoteShare = known && known->remoteShare > 0
                                  ? published(known->remoteShare)
                                  : assumed(usualRemoteShare);
    if (countParts(machine.root, "package") < 2)
      return;
    // Sockets are joined by links for about a third of what their memories
    // give.
    constexpr double usualShare = 0.33;
    PartDescription &package = description.parts["package"];
    if (known && known->linkGigabytes > 0)
      package.linkBytesPerSecond = published(known->linkGigabytes * giga);
    else
      package.linkBytesPerSecond =
          assumed(usualShare * description.parts[memoryKind].bytesPerSecond *
                  static_cast<double>(nodes) /
                  static_cast<double>(countParts(machine.root, "package")));
  }

  const Machine &machine;
  const Generation &generation;
  const bool hasIntegers;
  const KnownProcessor *known;
  MachineDescription description;
  std::string memoryKind;
  uint64_t nodes = 0, coresOfNode = 0, coresOfSlice = 0;
};

} // namespace

MachineDescription sandwich::describeMachine(const Machine &machine,
                                             const Target &target) {
  return Describer(machine, target).describe();
}

Machine sandwich::machineOfNode(uint64_t cores) {
  Machine machine;
  machine.root.kind = "machine";
  MachineNode node;
  node.kind = "numa";
  node.coreCount = cores;
  machine.root.children.push_back(std::move(node));
  return machine;
}

MachineDescription sandwich::describeNode(uint64_t cores,
                                          const Target &target) {
  return describeMachine(machineOfNode(cores), target);
}
