//===- LatentMeasurement.cpp - Groups of cores, looked for ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LatentMeasurement.h"

#include "MeasuringTools.h"
#include "MemoryMeasurement.h"
#include "PingPong.h"

#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Support/Statistics.h"
#include "sandwich/Support/WidestVectors.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <optional>

using namespace sandwich;
using namespace sandwich::measuring;

/// Eight floats. Compilers keep larger vectors in memory where registers are
/// not as large.
typedef float Lanes __attribute__((vector_size(32)));

/// Chains of multiplications and additions in registers: enough to keep two
/// units busy, and few enough for 16 registers of AVX2.
static constexpr unsigned chains = 8;

/// Multiplies and adds `rounds` times in each lane of each chain.
SANDWICH_WIDEST_VECTORS
static float multiplyAdd(unsigned rounds, float start) {
  const Lanes zero = {};
  // By name: compilers keep an array of them in memory.
  Lanes a = zero + start, b = a + 1, c = a + 2, d = a + 3;
  Lanes e = a + 4, f = a + 5, g = a + 6, h = a + 7;
  for (unsigned round = 0; round < rounds; ++round) {
    a = a * 0.5F + 1.0F;
    b = b * 0.5F + 1.0F;
    c = c * 0.5F + 1.0F;
    d = d * 0.5F + 1.0F;
    e = e * 0.5F + 1.0F;
    f = f * 0.5F + 1.0F;
    g = g * 0.5F + 1.0F;
    h = h * 0.5F + 1.0F;
  }
  const Lanes total = a + b + c + d + e + f + g + h;
  return total[0];
}

namespace {

/// What some threads of a team do at the same time, while the others return at
/// once.
class Together {
public:
  /// `members` are numbers of the team's threads.
  explicit Together(std::span<const unsigned> members) : members(members) {}

  /// Calls `work(index)` on each member, when all are awake.
  template <typename Work> void run(PhaseTeam &team, Work work) {
    struct Call {
      Together &together;
      Work &work;
    } call{*this, work};
    team.run(
        std::ranges::max(members) + 1,
        [](void *context, int32_t thread) {
          auto &[together, work] = *static_cast<Call *>(context);
          auto found = std::ranges::find(together.members,
                                         static_cast<unsigned>(thread));
          if (found == together.members.end())
            return;
          together.awake.fetch_add(1, std::memory_order_acq_rel);
          while (together.awake.load(std::memory_order_acquire) <
                 together.members.size()) {
          }
          work(static_cast<size_t>(found - together.members.begin()));
        },
        &call);
  }

private:
  std::span<const unsigned> members;
  alignas(128) std::atomic<size_t> awake{0};
};

class HostProbe : public PairProbe {
public:
  explicit HostProbe(const MachineNode &machine)
      : machine(machine), nodes(partsOf(machine, "numa")) {
    if (nodes.empty())
      nodes.push_back(&machine);
  }

  Result<double> handoffSeconds(unsigned first, unsigned second) override {
    const std::array cpus = {first, second};
    SANDWICH_ASSIGN_OR_RETURN(Crew * crew, crewOf(cpus));
    constexpr size_t rounds = 3;
    std::vector<double> seconds;
    while (seconds.size() < rounds) {
      PingPong game;
      Together(crew->members).run(*crew->team, [&](size_t index) {
        game.play(static_cast<int32_t>(index));
      });
      seconds.push_back(game.seconds);
    }
    return median(std::move(seconds));
  }

  Result<double> bytesPerSecond(std::span<const unsigned> cpus) override {
    SANDWICH_ASSIGN_OR_RETURN(Crew * crew, crewOf(cpus));
    SANDWICH_RETURN_IF_ERROR(prepareMemory(*crew, cpus[0]));
    const std::span<const std::byte> memory = crew->memory->contents();
    // Short, so that all stop at the same time, and long enough for streams.
    constexpr uint64_t piece = uint64_t{512} << 10;
    return sumOfRates(*crew, [&](size_t index) {
      uint64_t &position = crew->positions[crew->members[index]];
      if (position + piece > memory.size())
        position = 0;
      sink.fetch_add(sumLines(memory.subspan(position, piece), crew->streams),
                     std::memory_order_relaxed);
      position += piece;
      return static_cast<double>(piece);
    });
  }

  Result<double> flopsPerSecond(std::span<const unsigned> cpus) override {
    SANDWICH_ASSIGN_OR_RETURN(Crew * crew, crewOf(cpus));
    constexpr unsigned rounds = 20000;
    constexpr double lanes = sizeof(Lanes) / sizeof(float);
    return sumOfRates(*crew, [&](size_t index) {
      const float result = multiplyAdd(rounds, static_cast<float>(index));
      sink.fetch_add(static_cast<uint64_t>(result), std::memory_order_relaxed);
      return 2.0 * rounds * chains * lanes;
    });
  }

  double elapsedSeconds() const override { return secondsSince(begin); }

private:
  /// A thread for each core of one part, which the topology divides no further.
  struct Crew {
    std::vector<unsigned> cpus;
    std::unique_ptr<PhaseTeam> team;
    /// That of the part's NUMA node, once it is needed.
    const AnonymousMemory *memory = nullptr;
    unsigned streams = 1;
    /// Where each thread reads next.
    std::vector<uint64_t> positions;
    /// The threads of the CPUs that were asked for last.
    std::vector<unsigned> members;
  };

  /// The smallest part of several cores that has a CPU.
  const MachineNode &partAround(unsigned cpu) const {
    const MachineNode *part = &machine;
    while (true) {
      auto inner =
          std::ranges::find_if(part->children, [&](const MachineNode &child) {
            return hasCpu(child, cpu) && firstCpusOfCores(child).size() > 1;
          });
      if (inner == part->children.end())
        return *part;
      part = &*inner;
    }
  }

  Result<Crew *> crewOf(std::span<const unsigned> cpus) {
    auto known = crewOfCpu.find(cpus[0]);
    if (known == crewOfCpu.end()) {
      auto crew = std::make_unique<Crew>();
      crew->cpus = firstCpusOfCores(partAround(cpus[0]));
      SANDWICH_ASSIGN_OR_RETURN(crew->team, createPinnedTeam(crew->cpus));
      for (unsigned cpu : crew->cpus)
        known = crewOfCpu.insert_or_assign(cpu, crew.get()).first;
      crews.push_back(std::move(crew));
      known = crewOfCpu.find(cpus[0]);
      if (known == crewOfCpu.end())
        return makeError("CPU ", cpus[0], " is not the first of a core");
    }
    Crew &crew = *known->second;
    crew.members.clear();
    for (unsigned cpu : cpus) {
      auto found = std::ranges::find(crew.cpus, cpu);
      if (found == crew.cpus.end())
        return makeError("CPUs ", cpus[0], " and ", cpu,
                         " are not in one part of the machine");
      crew.members.push_back(static_cast<unsigned>(found - crew.cpus.begin()));
    }
    return &crew;
  }

  Status prepareMemory(Crew &crew, unsigned cpu) {
    if (crew.memory)
      return {};
    auto node = std::ranges::find_if(
        nodes, [&](const auto *each) { return hasCpu(*each, cpu); });
    if (node == nodes.end())
      return makeError("CPU ", cpu, " is in no NUMA node");
    auto known = memories.find(*node);
    if (known == memories.end()) {
      SANDWICH_ASSIGN_OR_RETURN(AnonymousMemory memory, memoryOf(**node));
      known = memories.emplace(*node, std::move(memory)).first;
    }
    crew.memory = &known->second;
    crew.streams =
        MemoryReader(*crew.team, 1, crew.memory->contents()).streamCount();
    // Far enough from each other that no thread reads what a cache still has of
    // another.
    for (size_t i = 0; i < crew.cpus.size(); ++i)
      crew.positions.push_back(crew.memory->size() / crew.cpus.size() * i);
    return {};
  }

  /// Repeats `work(index)`, which returns how much it did, on all members for
  /// some milliseconds, and adds up what each did in a second. The slowest does
  /// not count for the others, as it would if all had the same work.
  template <typename Work> double sumOfRates(Crew &crew, Work work) {
    constexpr double enough = 3e-3;
    struct alignas(128) Rate {
      double perSecond = 0;
    };
    std::vector<Rate> rates(crew.members.size());
    Together(crew.members).run(*crew.team, [&](size_t index) {
      const Clock::time_point start = Clock::now();
      double done = 0, seconds = 0;
      while (seconds < enough) {
        done += work(index);
        seconds = secondsSince(start);
      }
      rates[index].perSecond = done / seconds;
    });
    double sum = 0;
    for (const Rate &rate : rates)
      sum += rate.perSecond;
    return sum;
  }

  const MachineNode &machine;
  const Clock::time_point begin = Clock::now();
  std::vector<const MachineNode *> nodes;
  std::map<const MachineNode *, AnonymousMemory> memories;
  std::vector<std::unique_ptr<Crew>> crews;
  std::map<unsigned, Crew *> crewOfCpu;
  /// Keeps results from being removed.
  std::atomic<uint64_t> sink{0};
};

} // namespace

std::unique_ptr<PairProbe>
sandwich::createHostProbe(const MachineNode &machine) {
  return std::make_unique<HostProbe>(machine);
}

Status sandwich::measureLatentGroups(const MachineNode &machine,
                                     MachineMeasurement &result,
                                     const MeasurementProgress &progress) {
  HostProbe probe(machine);
  LatentSearchOptions options;
  options.seconds = latentSearchSeconds(countParts(machine, "core"));
  options.progress = [&](double done) {
    return report(progress, "looking for groups of cores", done);
  };
  SANDWICH_ASSIGN_OR_RETURN(LatentSearch search,
                            findLatentGroups(machine, probe, options));
  for (FoundGroups &found : search.groups) {
    // What a part around the groups takes away, it takes of all.
    if (found.sharesReading)
      found.group.parameters.bytesPerSecond = {
          LatencyModel::bandwidthThatPasses(
              found.bytesAlone,
              found.bytesAlone * found.bytesTogether / found.bytesApart),
          ValueOrigin::Measured, "whole groups read beside spread cores"};
    result.description.latent.push_back(std::move(found.group));
  }
  std::ranges::move(search.notes, std::back_inserter(result.notes));
  return {};
}
