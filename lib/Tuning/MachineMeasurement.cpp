//===- MachineMeasurement.cpp - What this machine's parts can do ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MachineMeasurement.h"
#include "sandwich/Runtime/MemoryReading.h"
#include "sandwich/Runtime/PhaseTeam.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Topology/LatencyModel.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <sched.h>
#include <thread>

using namespace sandwich;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Status report(const MeasurementProgress &progress, std::string_view stage,
              double done) {
  return progress ? progress(stage, std::min(done, 1.0)) : Status();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// A team with one thread on each of `cpus`. A team runs unpinned where the
/// system refuses to pin it, and would measure something else.
Result<std::unique_ptr<PhaseTeam>>
createPinnedTeam(const std::vector<unsigned> &cpus) {
  PhaseTeamOptions options;
  options.threads = static_cast<unsigned>(cpus.size());
  options.cpus = cpus;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            PhaseTeam::create(options));
  std::vector<int> places(cpus.size());
  team->run(
      options.threads,
      [](void *context, int32_t thread) {
        (*static_cast<std::vector<int> *>(context))[thread] = ::sched_getcpu();
      },
      &places);
  for (size_t i = 0; i < cpus.size(); ++i)
    if (places[i] != static_cast<int>(cpus[i]))
      return makeError("cannot measure CPU ", cpus[i],
                       ": this process may not use it");
  return team;
}

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

//===----------------------------------------------------------------------===//
// The machine's parts
//===----------------------------------------------------------------------===//

void collect(const MachineNode &node, std::string_view kind,
             std::vector<const MachineNode *> &parts) {
  if (node.kind == kind)
    parts.push_back(&node);
  for (const MachineNode &child : node.children)
    collect(child, kind, parts);
}

std::vector<const MachineNode *> partsOf(const MachineNode &node,
                                         std::string_view kind) {
  std::vector<const MachineNode *> parts;
  collect(node, kind, parts);
  return parts;
}

/// The first or last CPU of a part.
unsigned cpuAtEnd(const MachineNode &node, bool last) {
  const MachineNode *part = &node;
  while (!part->children.empty())
    part = last ? &part->children.back() : &part->children.front();
  return static_cast<unsigned>(part->index);
}

/// The first CPU of each core of a part.
std::vector<unsigned> coresOf(const MachineNode &part) {
  std::vector<unsigned> cpus;
  for (const MachineNode *core : partsOf(part, "core"))
    cpus.push_back(cpuAtEnd(*core, /*last=*/false));
  return cpus;
}

bool hasCpu(const MachineNode &part, unsigned cpu) {
  return std::ranges::any_of(partsOf(part, "cpu"), [&](const auto *own) {
    return own->index == static_cast<int64_t>(cpu);
  });
}

/// The first CPU of the first of the fastest cores.
unsigned fastestCpu(const MachineNode &machine) {
  std::vector<const MachineNode *> cores = partsOf(machine, "core");
  return cpuAtEnd(
      **std::ranges::max_element(
          cores, {}, [](const MachineNode *core) { return core->speed; }),
      /*last=*/false);
}

//===----------------------------------------------------------------------===//
// Reading memory
//===----------------------------------------------------------------------===//

/// Memory of one NUMA node, far larger than the caches of its cores.
Result<AnonymousMemory> memoryOf(const MachineNode &node) {
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
  const std::vector<unsigned> cpus = coresOf(node);
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
    const double seconds = readSeconds(*team, team->size(),
                                       {memory->data() + position, pieceBytes});
    position += pieceBytes;
    best = std::max(best, static_cast<double>(pieceBytes) / seconds);
  }

  /// Of all samples.
  double bytesPerSecond() const { return best; }

private:
  explicit Reading(const AnonymousMemory &memory) : memory(&memory) {}

  const AnonymousMemory *memory;
  std::unique_ptr<PhaseTeam> team;
  uint64_t pieceBytes = 0;
  uint64_t position = 0;
  double best = 0;
};

/// What reads the memory of a machine's NUMA nodes, with how many cores.
class MemoryMeasurement {
public:
  MemoryMeasurement(const MachineNode &machine)
      : nodes(partsOf(machine, "numa")) {
    if (nodes.empty())
      nodes.push_back(&machine);
    const unsigned cpu = fastestCpu(machine);
    home = static_cast<size_t>(
        std::ranges::find_if(
            nodes, [&](const auto *node) { return hasCpu(*node, cpu); }) -
        nodes.begin());
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
    MachineParameters &parameters = result.parameters;
    const double alone = readings[core].bytesPerSecond();
    parameters.coreBytesPerSecond = alone;
    double passedByCache = 0;
    if (cache < readings.size()) {
      passedByCache = readings[cache].bytesPerSecond();
      parameters.parts["l3"].bytesPerSecond = LatencyModel::bandwidthThatPasses(
          alone * static_cast<double>(coresOf(*homeCache).size()),
          passedByCache);
    }
    std::vector<double> bandwidths;
    for (size_t i = 0; i < nodes.size(); ++i)
      bandwidths.push_back(LatencyModel::bandwidthThatPasses(
          askedOf(*nodes[i], alone, passedByCache),
          readings[ofNodes + i].bytesPerSecond()));
    parameters.parts[nodes[home]->kind].bytesPerSecond = median(bandwidths);
    auto [least, most] = std::ranges::minmax(bandwidths);
    constexpr double equalNodes = 0.95;
    if (least < equalNodes * most)
      for (size_t i = 0; i < nodes.size(); ++i)
        parameters.memories[static_cast<unsigned>(nodes[i]->index)] =
            bandwidths[i];
    std::vector<double> shares;
    for (size_t i = ofOthers; i < ofOthers + nodes.size() - 1; ++i)
      shares.push_back(readings[i].bytesPerSecond() / alone);
    if (shares.empty())
      result.assumed.emplace_back(
          "remote_share: this process uses only one NUMA node");
    else
      parameters.remoteShare = std::min(1.0, median(shares));
  }

private:
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
      SANDWICH_RETURN_IF_ERROR(add(coresOf(*nodes[i]), memories[i]));
    ofOthers = readings.size();
    for (size_t i = 0; i < nodes.size(); ++i)
      if (i != home)
        SANDWICH_RETURN_IF_ERROR(add({cpu}, memories[i]));
    cache = readings.size();
    std::vector<const MachineNode *> caches = partsOf(*nodes[home], "l3");
    if (caches.size() < 2)
      return {};
    homeCache = *std::ranges::find_if(
        caches, [&](const auto *part) { return hasCpu(*part, cpu); });
    return add(coresOf(*homeCache), memories[home]);
  }

  /// What a node's caches ask of its memory if all its cores read.
  static double askedOf(const MachineNode &node, double alone,
                        double passedByCache) {
    double asked = alone * static_cast<double>(coresOf(node).size());
    if (passedByCache > 0)
      asked = std::min(asked, passedByCache * static_cast<double>(
                                                  partsOf(node, "l3").size()));
    return asked;
  }

  std::vector<const MachineNode *> nodes;
  /// The node of the core that reads alone, and the L3 of that core.
  size_t home;
  const MachineNode *homeCache = nullptr;
  std::vector<AnonymousMemory> memories;
  std::vector<Reading> readings;
  /// Where in `readings` are: the core alone, all of each node, the core with
  /// the memory of other nodes, and all of an L3, if there is such a reading.
  static constexpr size_t core = 0;
  size_t ofNodes = 0, ofOthers = 0, cache = 0;
};

/// Adds a pair for each kind in `node` that has none yet.
void addPairs(const MachineNode &node, std::vector<CpuPair> &pairs) {
  if (node.children.size() > 1 &&
      std::ranges::find(pairs, node.kind, &CpuPair::kind) == pairs.end())
    pairs.push_back({node.kind, cpuAtEnd(node.children.front(), false),
                     cpuAtEnd(node.children.back(), true)});
  for (const MachineNode &child : node.children)
    addPairs(child, pairs);
}

} // namespace

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

Result<double> sandwich::measureCoreFlops(unsigned cpu, bool bf16Weights,
                                          const MeasurementProgress &progress) {
  constexpr std::string_view stage = "multiplying matrices";
  SANDWICH_RETURN_IF_ERROR(report(progress, stage, 0));
  SANDWICH_RETURN_IF_ERROR(createPinnedTeam({cpu}));
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget("host"));
  MeasuringOptions options;
  options.cpus = {cpu};
  // Only what caches hold is read.
  options.weightBytes = uint64_t{16} << 20;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<MeasuringEvaluator> evaluator,
                            MeasuringEvaluator::create(target, options));
  MatmulShape shape;
  shape.n = shape.k = 2048;
  shape.bf16Weights = bf16Weights;
  // Best last, as the schedule rule prefers them.
  auto isa = std::ranges::find_if(
      target.matrixISAs.rbegin(), target.matrixISAs.rend(),
      [&](MatrixISA isa) { return bf16Weights || !multipliesBF16(isa); });
  if (isa == target.matrixISAs.rend())
    return makeError("this CPU has no instructions for f32");
  constexpr size_t runs = 7;
  std::vector<double> flops;
  while (flops.size() < runs) {
    SANDWICH_ASSIGN_OR_RETURN(double run,
                              evaluator->measurePeakFlops(shape, *isa));
    flops.push_back(run);
    SANDWICH_RETURN_IF_ERROR(
        report(progress, stage, static_cast<double>(flops.size()) / runs));
  }
  return median(std::move(flops));
}

Result<MachineMeasurement>
sandwich::measureMachine(const MachineNode &machine, bool bf16Weights,
                         const MeasurementProgress &progress) {
  if (partsOf(machine, "core").empty())
    return makeError("the machine has no cores");
  MachineMeasurement result;
  result.parameters = assumedParameters();
  SANDWICH_ASSIGN_OR_RETURN(
      result.parameters.coreFlopsPerSecond,
      measureCoreFlops(fastestCpu(machine), bf16Weights, progress));
  MemoryMeasurement memory(machine);
  SANDWICH_RETURN_IF_ERROR(memory.run(progress));
  memory.fill(result);
  const std::vector<CpuPair> pairs = handoffPairs(machine);
  if (pairs.empty())
    result.assumed.emplace_back(
        "handoff_ns: this process may use only one CPU");
  for (const CpuPair &pair : pairs) {
    SANDWICH_ASSIGN_OR_RETURN(
        result.parameters.parts[pair.kind].handoffSeconds,
        measureHandoff(pair.first, pair.second, progress));
  }
  return result;
}
