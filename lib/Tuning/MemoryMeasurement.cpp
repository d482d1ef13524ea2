//===- MemoryMeasurement.cpp - How fast cores read memory -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryMeasurement.h"

#include "MeasuringTools.h"

#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Support/Statistics.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <optional>
#include <sstream>
#include <thread>

using namespace sandwich;
using namespace sandwich::measuring;

Result<AnonymousMemory> sandwich::memoryOf(const MachineNode &node) {
  // Some machines hide how large their caches are.
  uint64_t bytes = uint64_t{512} << 20;
  uint64_t caches = 0;
  for (const MachineNode *cache : partsOf(node, "l3"))
    caches += cache->bytes;
  bytes = std::max(bytes, 4 * caches);
  if (node.bytes > 0)
    bytes = std::min(bytes, node.bytes / 4);
  SANDWICH_ASSIGN_OR_RETURN(
      AnonymousMemory memory,
      AnonymousMemory::allocate(bytes, "measuring this machine",
                                AnonymousMemory::Fill::Wholly));
  const std::vector<unsigned> cpus = firstCpusOfCores(node);
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            createPinnedTeam(cpus));
  // A page lies in the memory of who touches it first.
  struct FillTask {
    AnonymousMemory &memory;
    size_t threads;
  } task{memory, cpus.size()};
  team->run(
      static_cast<unsigned>(cpus.size()),
      [](void *context, int32_t thread) {
        auto &[memory, threads] = *static_cast<FillTask *>(context);
        const size_t index = static_cast<size_t>(thread);
        const size_t begin = memory.size() / threads * index;
        const size_t end = index + 1 == threads
                               ? memory.size()
                               : memory.size() / threads * (index + 1);
        std::memset(memory.data() + begin, 1, end - begin);
      },
      &task);
  return memory;
}

namespace {

/// Some cores that read some node's memory, again and again.
class Reading {
public:
  static Result<Reading> create(const std::vector<unsigned> &cpus,
                                const AnonymousMemory &memory) {
    Reading reading(memory);
    SANDWICH_ASSIGN_OR_RETURN(reading.team, createPinnedTeam(cpus));
    // One core takes long for all of it.
    constexpr uint64_t mostOfCore = uint64_t{256} << 20;
    reading.pieceBytes =
        std::min<uint64_t>(memory.size(), mostOfCore * cpus.size());
    return reading;
  }

  /// Reads a piece that was not read for longest.
  void sample() {
    // A team without work keeps its cores for a millisecond.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (position + pieceBytes > memory->size())
      position = 0;
    const std::span<const std::byte> piece(memory->data() + position,
                                           pieceBytes);
    if (!reader)
      reader.emplace(*team, team->size(), piece);
    const double seconds = reader->seconds(piece);
    position += pieceBytes;
    samples.push_back(static_cast<double>(pieceBytes) / seconds);
  }

  /// What it mostly reads: where neighbours share the memory, the fastest
  /// sample tells what these cores seldom get.
  double bytesPerSecond() const { return median(samples); }

  /// Of each sample, in order.
  const std::vector<double> &sampled() const { return samples; }

private:
  explicit Reading(const AnonymousMemory &memory) : memory(&memory) {}

  const AnonymousMemory *memory;
  std::unique_ptr<PhaseTeam> team;
  std::optional<MemoryReader> reader;
  uint64_t pieceBytes = 0;
  uint64_t position = 0;
  std::vector<double> samples;
};

std::string placeOf(const MachineNode &node) {
  return node.index < 0 ? node.kind
                        : node.kind + " " + std::to_string(node.index);
}

/// What reads the memory of a machine's NUMA nodes, with how many cores.
class MemoryMeasurement {
public:
  MemoryMeasurement(const MachineNode &machine)
      : packages(partsOf(machine, "package")), nodes(partsOf(machine, "numa")) {
    if (nodes.empty())
      nodes.push_back(&machine);
    // Some cores may be in no node.
    const unsigned cpu = fastestCpu(machine);
    auto found = std::ranges::find_if(
        nodes, [&](const auto *node) { return hasCpu(*node, cpu); });
    home =
        found == nodes.end() ? 0 : static_cast<size_t>(found - nodes.begin());
  }

  Status run(const MeasurementProgress &progress) {
    SANDWICH_RETURN_IF_ERROR(prepare(progress));
    constexpr double enoughSeconds = 3;
    constexpr int fewestRounds = 3;
    Clock::time_point begin = Clock::now();
    for (int round = 0;
         round < fewestRounds || secondsSince(begin) < enoughSeconds; ++round)
      for (Reading &reading : readings) {
        SANDWICH_RETURN_IF_ERROR(report(progress, "reading memory",
                                        secondsSince(begin) / enoughSeconds));
        reading.sample();
      }
    return {};
  }

  void fill(MachineMeasurement &result) const {
    MachineDescription &description = result.description;
    const double alone = readings[core].bytesPerSecond();
    description.coreBytesPerSecond = measured(alone, "one core reads");
    double passedByCache = 0;
    if (cache < readings.size()) {
      passedByCache = readings[cache].bytesPerSecond();
      description.parts["l3"].bytesPerSecond = measured(
          LatencyModel::bandwidthThatPasses(
              alone * static_cast<double>(firstCpusOfCores(*homeCache).size()),
              passedByCache),
          "all cores of an L3 read");
    }
    std::vector<double> bandwidths;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Reading &reading = readings[ofNodes + i];
      bandwidths.push_back(LatencyModel::bandwidthThatPasses(
          askedOf(*nodes[i], alone, passedByCache), reading.bytesPerSecond()));
      if (std::optional<std::string> note =
              unsteadyReading(placeOf(*nodes[i]), reading.sampled()))
        result.notes.push_back(*std::move(note));
    }
    const char *how = "all cores of each node read";
    description.parts[nodes[home]->kind].bytesPerSecond =
        measured(median(bandwidths), how);
    // Whatever the firmware says.
    description.memories.clear();
    auto [least, most] = std::ranges::minmax(bandwidths);
    constexpr double equalNodes = 0.95;
    if (least < equalNodes * most)
      for (size_t i = 0; i < nodes.size(); ++i)
        description.memories[static_cast<unsigned>(nodes[i]->index)] =
            measured(bandwidths[i], how);
    fillRemote(result, alone);
  }

private:
  static MachineValue measured(double value, const char *how) {
    return {value, ValueOrigin::Measured, how};
  }

  void fillRemote(MachineMeasurement &result, double alone) const {
    std::vector<double> shares;
    for (size_t i = ofOthers; i < ofOthers + nodes.size() - 1; ++i)
      shares.push_back(readings[i].bytesPerSecond() / alone);
    if (shares.empty()) {
      result.unmeasured.emplace_back(
          "remote_share: this process uses only one NUMA node");
      return;
    }
    MachineDescription &description = result.description;
    description.remoteShare = measured(std::min(1.0, median(shares)),
                                       "one core reads other nodes' memories");
    if (!homePackage)
      return;
    const double asked =
        description.remoteShare * alone *
        static_cast<double>(firstCpusOfCores(*homePackage).size());
    description.parts["package"].linkBytesPerSecond =
        measured(LatencyModel::bandwidthThatPasses(
                     asked, readings[link].bytesPerSecond()),
                 "all cores of a socket read another one's memory");
  }

  Status add(const std::vector<unsigned> &cpus, const AnonymousMemory &memory) {
    SANDWICH_ASSIGN_OR_RETURN(Reading reading, Reading::create(cpus, memory));
    readings.push_back(std::move(reading));
    return {};
  }

  Status prepare(const MeasurementProgress &progress) {
    for (const MachineNode *node : nodes) {
      SANDWICH_RETURN_IF_ERROR(report(progress, "filling memory",
                                      static_cast<double>(memories.size()) /
                                          static_cast<double>(nodes.size())));
      SANDWICH_ASSIGN_OR_RETURN(AnonymousMemory memory, memoryOf(*node));
      memories.push_back(std::move(memory));
    }
    const unsigned cpu = fastestCpu(*nodes[home]);
    SANDWICH_RETURN_IF_ERROR(add({cpu}, memories[home]));
    ofNodes = readings.size();
    for (size_t i = 0; i < nodes.size(); ++i)
      SANDWICH_RETURN_IF_ERROR(add(firstCpusOfCores(*nodes[i]), memories[i]));
    ofOthers = readings.size();
    for (size_t i = 0; i < nodes.size(); ++i)
      if (i != home)
        SANDWICH_RETURN_IF_ERROR(add({cpu}, memories[i]));
    SANDWICH_RETURN_IF_ERROR(addLink());
    cache = readings.size();
    std::vector<const MachineNode *> caches = partsOf(*nodes[home], "l3");
    if (caches.size() < 2)
      return {};
    auto found = std::ranges::find_if(
        caches, [&](const auto *part) { return hasCpu(*part, cpu); });
    if (found == caches.end())
      return {};
    homeCache = *found;
    return add(firstCpusOfCores(*homeCache), memories[home]);
  }

  /// All cores of the package of the home node read a memory of another one.
  Status addLink() {
    const unsigned cpu = fastestCpu(*nodes[home]);
    auto package = std::ranges::find_if(
        packages, [&](const auto *part) { return hasCpu(*part, cpu); });
    if (package == packages.end())
      return {};
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (hasCpu(**package, firstCpusOfCores(*nodes[i]).front()))
        continue;
      homePackage = *package;
      link = readings.size();
      return add(firstCpusOfCores(**package), memories[i]);
    }
    return {};
  }

  /// What a node's caches ask of its memory if all its cores read.
  static double askedOf(const MachineNode &node, double alone,
                        double passedByCache) {
    double asked = alone * static_cast<double>(firstCpusOfCores(node).size());
    if (passedByCache > 0)
      asked = std::min(asked, passedByCache * static_cast<double>(
                                                  partsOf(node, "l3").size()));
    return asked;
  }

  std::vector<const MachineNode *> packages, nodes;
  /// The node of the core that reads alone, and the L3 of that core. Its
  /// package where there are memories outside of it.
  size_t home;
  const MachineNode *homeCache = nullptr, *homePackage = nullptr;
  std::vector<AnonymousMemory> memories;
  std::vector<Reading> readings;
  /// Where in `readings` are: the core alone, all of each node, the core with
  /// the memory of other nodes, all of a package with a memory of another one,
  /// and all of an L3, if there are such readings.
  static constexpr size_t core = 0;
  size_t ofNodes = 0, ofOthers = 0, link = 0, cache = 0;
};

} // namespace

std::optional<std::string>
sandwich::unsteadyReading(std::string_view memory,
                          const std::vector<double> &bytesPerSecond) {
  const double slow = quantile(bytesPerSecond, 0.1);
  const double fast = quantile(bytesPerSecond, 0.9);
  // A core that now and then is interrupted moves them by less.
  constexpr double steady = 1.25;
  if (fast <= steady * slow)
    return std::nullopt;
  std::ostringstream note;
  note << std::fixed << std::setprecision(0) << "what all cores of " << memory
       << " read of it moved between " << slow / 1e9 << " and " << fast / 1e9
       << " GB/s: other programs or virtual machines read, too, or the host "
          "moves this one's CPUs; predictions hold for "
       << median(bytesPerSecond) / 1e9 << " GB/s";
  return note.str();
}

Status sandwich::measureMemory(const MachineNode &machine,
                               MachineMeasurement &result,
                               const MeasurementProgress &progress) {
  MemoryMeasurement memory(machine);
  SANDWICH_RETURN_IF_ERROR(memory.run(progress));
  memory.fill(result);
  return {};
}
