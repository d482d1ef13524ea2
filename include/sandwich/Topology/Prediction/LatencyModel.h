//===- LatencyModel.h - How long a machine takes for a step -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Predicts how long steps take with given cores, on this machine or any other:
/// what the latency simulation of the Sandwich paper, section 4.3, adds up.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_PREDICTION_LATENCYMODEL_H
#define SANDWICH_TOPOLOGY_PREDICTION_LATENCYMODEL_H

#include "sandwich/Machine/MachineDescription.h"
#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sandwich {

/// What of a language model decides how long a step takes.
struct ModelWork {
  int64_t layers = 0;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t queryHeads = 0;
  int64_t keyValueHeads = 0;
  int64_t headDim = 0;
  int64_t vocabulary = 0;
  double bytesPerWeight = 2;
  double bytesPerKeyValue = 2;

  /// Whether weights are integers, and inputs are rounded to int8 to be
  /// multiplied with them.
  bool roundsInputs = false;

  /// What matmuls multiply. Integers by inputs that are not rounded become
  /// floats, as fast as a machine has them for weights of 16 bits.
  MatrixElement matrixElement() const {
    if (roundsInputs)
      return MatrixElement::Int8;
    return bytesPerWeight > 2 ? MatrixElement::F32 : MatrixElement::BF16;
  }
  /// Elements of one token's queries in one layer, and of its keys and values.
  double queryElements() const;
  double keyValueElements() const;
  /// Weights of one layer's matmuls, and of the one that makes logits.
  double layerWeights() const;
  double logitWeights() const;
};

/// The operating system's indexes of the CPUs of one process (tensor-parallel
/// rank) in one phase.
using RankCpus = std::vector<unsigned>;

/// What one step computes.
struct StepWork {
  double tokens = 0;
  /// Positions that the tokens attend to, summed over the tokens.
  double attendedPositions = 0;
  /// Positions whose keys and values are read, once for each sequence.
  double cachedPositions = 0;
  double logitRows = 0;

  /// A piece of a prompt of `tokens` tokens, which attend to `positions`
  /// positions together: their own and all before them.
  static StepWork piece(double tokens, double positions);
  /// A token for each of `sequences` sequences, which have `cachedPositions` in
  /// all.
  static StepWork decode(double sequences, double cachedPositions);
};

/// How fast a team of ranks works.
struct TeamSpeed {
  double ranks = 1;
  /// CPUs of each rank; of unequal ones the most.
  double threads = 1;
  /// Operations and bytes per second of all ranks, at the pace of the slowest
  /// core, since work is divided evenly.
  double flopsPerSecond = 0;
  double bytesPerSecond = 0;
  /// One barrier inside the slowest rank.
  double barrierSeconds = 0;
  /// An all-reduce: what it takes for nothing, and for each byte of a rank.
  double allReduceSeconds = 0;
  double allReduceSecondsPerByte = 0;
  /// By how much all is slower since the system's own work finds no idle CPU.
  double interference = 1;
  /// How much longer a byte of the KV cache takes than one of the weights,
  /// where they lie in different memories.
  double cacheSlowdown = 1;

  auto operator<=>(const TeamSpeed &) const = default;
};

/// Where the seconds of one step go, or of several; together they are what
/// `LatencyModel::stepSeconds` predicts.
struct StepTime {
  /// Of computing and reading the longer, and of the shorter what the longer
  /// does not hide.
  double computing = 0;
  double reading = 0;
  /// All-reduces of the ranks, and barriers inside them.
  double collectives = 0;
  double barriers = 0;
  /// What the system's own work adds to all of these.
  double wakeups = 0;

  double seconds() const {
    return computing + reading + collectives + barriers + wakeups;
  }
};

/// What the slowest core of a team waits for while it reads: shares of the
/// time, which add up to 1, by name. "cores' own reading" is what a core takes
/// for its node's memory while all others sleep, "memory of other nodes" what
/// it takes for others; "numa bandwidth" what parts of that kind add as they do
/// not pass on all that is asked of them, latent groups by their names; and
/// "package links" the same of links.
using ReadingShares = std::map<std::string, double>;

/// Bytes that a rank keeps in memory.
struct RankBytes {
  double weights = 0;
  /// The KV cache, and what a step computes with.
  double others = 0;

  double sum() const { return weights + others; }
};

/// Ranks that the memories where they must lie cannot hold.
struct MemoryShortage {
  /// The NUMA nodes that they share, ascending, and their bytes.
  std::vector<unsigned> nodes;
  double available = 0;
  /// How many ranks lie there, and their bytes.
  size_t ranks = 0;
  double needed = 0;
};

/// A machine with its description, ready to tell the speed of teams. The model:
///
/// * Work is divided evenly over ranks and cores; the slowest core decides.
///   What a core computes and reads goes with its speed.
/// * A core asks for what it can read alone. Each part it is in, from the
///   smallest to the machine, passes on what it can of what its own parts pass
///   on (see `saturation` and `contentionLoss`), and all of them get the same
///   share of what they ask for. Latent groups are parts like others. What is
///   read from memories outside a part comes in over its links.
/// * Hardware threads of a core share what it computes and reads, so that a
///   second one adds nothing but its turn at each barrier.
/// * Of computing and reading the longer counts, and a part of the shorter (see
///   `unhiddenShare`): of the layers' matmuls, of logits and of attention each.
/// * A barrier hands one cache line from core to core, once for each, in any
///   order.
/// * An all-reduce is the rank-shifted one of section 6.2: every rank reads its
///   part of all others' sums and then everybody's result, with a barrier of
///   the ranks after each.
/// * If a phase keeps every CPU of the machine busy, the system's own work
///   takes one away now and then, and all others wait for it at the next
///   barrier (Petrini, Kerbyson and Pakin, "The Case of the Missing
///   Supercomputer Performance", 2003). One idle CPU is enough to prevent it.
class LatencyModel {
public:
  /// How gradually a part comes near its bandwidth as it is asked for more: it
  /// passes on (asked^-s + bandwidth^-s)^(-1/s), 84% of its bandwidth where
  /// just that is asked for. Queues are sometimes empty before they are always
  /// full. The four cores of an EPYC 7452's L3 are 3% below it at most
  /// (docs/RationaleTopoTree.md).
  static constexpr double saturation = 4;
  /// What a part loses of its bandwidth if it is asked for many times as much
  /// as it has: memory changes rows more often, tags are looked up again. At x
  /// times its bandwidth it loses `contentionLoss * (1 - 1 / x)`: all 24 cores
  /// of a Kunpeng 920's node read 3% less than 16, eight of an EPYC 7452 2.6%
  /// less than four.
  static constexpr double contentionLoss = 0.04;
  /// The share of the shorter of computing and reading that the longer does not
  /// hide: 16 tokens of a 1.3B model took 54 ms on a machine that computes them
  /// in 46 ms and reads the weights in 45 ms.
  static constexpr double unhiddenShare = 0.2;
  /// Barriers in each layer of the programs that this compiler makes, and
  /// all-reduces of a tensor-parallel layer.
  static constexpr int barriersPerLayer = 7;
  static constexpr int allReducesPerLayer = 2;

  /// Of a NUMA node's bandwidth, `description.memories` tells, else
  /// `description.parts`. Of `beside`, the memories outside the tree, those
  /// count that cores of `machine` have beside their own and whose bandwidth
  /// `description` tells. `element` is what matmuls multiply.
  ///
  /// Errors: a machine without CPUs, two CPUs of one index, a latent group
  /// whose `inside` the machine does not have or whose cores do not divide
  /// those of that part.
  static Result<LatencyModel> create(const MachineNode &machine,
                                     const MachineDescription &description,
                                     MatrixElement element,
                                     std::span<const MachineNode> beside = {});

  /// A share of what a rank reads, and the number of the memory that it lies
  /// in.
  struct MemoryShare {
    size_t memory;
    double share;
    bool operator==(const MemoryShare &) const = default;
  };
  /// Of one rank, adding up to 1; empty if the machine has no NUMA nodes.
  using MemoryShares = std::vector<MemoryShare>;
  /// [rank] Where the weights and caches of some ranks lie.
  struct RankMemories {
    std::vector<MemoryShares> weights, cache;
  };

  /// The weights of ranks that own these CPUs lie evenly in the memories of the
  /// NUMA nodes that the CPUs are in, whichever of them sleep later. Error: a
  /// CPU that the machine does not have.
  Result<RankMemories> memoriesOf(const std::vector<RankCpus> &ranks) const;

  /// What became of laying ranks into memories.
  struct MemoryPlacement {
    RankMemories memories;
    /// [rank] The indexes of the NUMA nodes that have something of it, the
    /// fastest first.
    std::vector<std::vector<unsigned>> nodes;
    /// The ranks that lack the most, if some do not fit.
    std::optional<MemoryShortage> shortage;
  };

  /// Lays `bytes[rank]` of ranks that own these CPUs into memories, as far as
  /// these have room; a memory of unknown size holds everything. As the runtime
  /// binds them: all of a rank that is inside one NUMA node goes to the fastest
  /// memory of the node's cores, and what does not fit to the next; first the
  /// weights of all ranks, then the rest. Ranks that ask one memory for more
  /// than it has get the same share of what they ask for. A rank in several
  /// nodes is bound nowhere: it lies evenly in their own memories, or where
  /// these have room. Errors: a CPU that the machine does not have, `bytes` of
  /// another number of ranks.
  Result<MemoryPlacement> place(const std::vector<RankCpus> &ranks,
                                std::span<const RankBytes> bytes) const;

  /// The speed of `ranks` whose weights lie in `memories`, else where the CPUs
  /// are. What is asked of a memory counts where it lies, whoever reads it.
  /// Errors: no rank, a rank without CPUs, a CPU that the machine does not
  /// have, one that is used twice, `memories` of another number of ranks.
  Result<TeamSpeed> speedOf(const std::vector<RankCpus> &ranks) const;
  Result<TeamSpeed> speedOf(const std::vector<RankCpus> &ranks,
                            const RankMemories &memories) const;

  /// What the rank that reads slowest, by which `speedOf` goes, waits for. A
  /// part that passes on (asked^-s + bandwidth^-s)^(-1/s) makes reading take a
  /// time of which each of both terms has its share of their sum, the
  /// derivatives by both (Euler's theorem on homogeneous functions): that of
  /// the bandwidth is the part's, that of what was asked is divided further by
  /// the part that asked. What contention loses goes in the same shares.
  /// Errors: those of `speedOf`.
  Result<ReadingShares> readingShares(const std::vector<RankCpus> &ranks,
                                      const RankMemories &memories) const;

  /// Seconds of one step, and where they go.
  static double stepSeconds(const TeamSpeed &team, const ModelWork &work,
                            const StepWork &step);
  static StepTime stepTime(const TeamSpeed &team, const ModelWork &work,
                           const StepWork &step);

  /// The bandwidth of a part that passes on `passed` where `asked` bytes per
  /// second are asked of it: what a measurement makes of it. A part that passes
  /// on nearly all shows no limit; 99% of `asked` count as the most.
  static double bandwidthThatPasses(double asked, double passed);

private:
  /// A part of the machine, or a latent group.
  struct Part {
    explicit Part(std::string name)
        : kind(std::move(name)), isNuma(kind == "numa") {}

    /// "core", "l3", ..., or the latent group's name.
    std::string kind;
    /// What is asked of each part often.
    bool isNuma;
    double bytesPerSecond = std::numeric_limits<double>::infinity();
    double linkBytesPerSecond = std::numeric_limits<double>::infinity();
    /// Its own, else that of the part around it.
    double handoffSeconds = 0;
    /// The part around it; none around the machine.
    std::optional<size_t> parent;
    /// Parts around it.
    size_t depth = 0;
    /// Whether NUMA nodes are inside it.
    bool holdsMemories = false;
    /// Of a NUMA node: the system's index, and what its memory holds.
    unsigned index = 0;
    double bytes = std::numeric_limits<double>::infinity();
    /// Of a memory outside the tree: the NUMA nodes that have it beside theirs.
    std::vector<size_t> besideNodes;
    /// As those of `MachineNode`; in a machine that was not read, of the cores
    /// that it has.
    uint64_t firstCore = 0;
    uint64_t coreCount = 0;

    void set(const PartDescription &description);
  };

  /// Where a CPU is.
  struct Place {
    /// The operating system's index.
    unsigned cpu = 0;
    /// The parts that it is in, smallest first.
    std::vector<size_t> path;
    /// Those of them that have links, by their number in `linked`.
    std::vector<size_t> links;
    /// Its core, or itself outside of any.
    size_t core = 0;
    /// The memory of its node, and the smallest part that holds memories.
    std::optional<size_t> memory, around;
    /// Of the machine's fastest core.
    double speed = 1;
  };

  /// What a CPU reads from its rank's memories.
  struct Reader {
    const Place *place;
    size_t rank;
    double bytesPerSecond;
  };

  /// How far each part limits what is asked of it: of the time that what it
  /// passes on takes, the share of its bandwidth's term. By the order in which
  /// readers meet them: parts inside memories, memories, links, and parts
  /// around. A part's links and a memory also have the share of what is asked
  /// that they pass on, 1 where nothing is.
  struct Limits {
    std::vector<double> inside, memories, links, around;
    std::vector<double> passedByMemory, passedByLinks;
  };

  LatencyModel() = default;
  /// `cores` are those met so far.
  Status addParts(const MachineNode &node,
                  const MachineDescription &description,
                  std::vector<size_t> &around, double speed, uint64_t &cores);
  Status addLatentGroups(const LatentGroup &group);
  /// Adds a memory outside the tree of which all is known that plans need. It
  /// is in the smallest part around all the nodes that have it.
  void addBeside(const MachineNode &memory,
                 const MachineDescription &description);
  /// Adds `part` to the paths of `members`, which are in the part `inside`,
  /// around the parts that have no others, of which `cpusOfPart` tells how many
  /// each has. Error: a part has some of them and others besides.
  Status putAround(const std::vector<Place *> &members, size_t part,
                   size_t inside, const std::vector<size_t> &cpusOfPart);
  /// Fills in what follows from the paths once all are known.
  void linkParts();
  /// Sorts `places`. Error: two of one CPU.
  Status sortPlaces();
  /// Error: a CPU that the machine does not have.
  Result<const Place *> find(unsigned cpu) const;
  /// All of the ranks' CPUs in their order, which read nothing yet. Errors: no
  /// rank, one without CPUs, a CPU that the machine does not have or that is
  /// used twice.
  Result<std::vector<Reader>>
  readersOf(const std::vector<RankCpus> &ranks) const;
  /// A NUMA node that holds no other one.
  bool isMemory(size_t part) const;
  /// Whether `part` is `outer` or inside it.
  bool isInside(size_t part, size_t outer) const;
  /// Whether `memory` is that of the place's node, or beside it.
  bool isLocal(const Place &place, size_t memory) const;
  /// The NUMA nodes that each rank's CPUs are in. Error: a CPU that the machine
  /// does not have.
  Result<std::vector<std::vector<size_t>>>
  nodesOf(const std::vector<RankCpus> &ranks) const;
  /// The memory of `node` and those beside it, the fastest first.
  std::vector<size_t> fastestFirst(size_t node) const;
  /// The share of these memories that is not of the place's node.
  double remoteShareOf(const Place &place, const MemoryShares &memories) const;
  /// Whether `passOn` goes through a part, around memories or inside them.
  bool passesOn(size_t part, bool aroundMemories) const;
  /// What a core at `place` reads from these memories while all others sleep.
  double bytesAlone(const Place &place, const MemoryShares &memories) const;
  /// The share of what its CPUs ask for that comes through each part and all
  /// around it, given what is `asked` of the smallest ones: of the parts that
  /// hold memories, or of those that are inside a memory. `limits`, if any, is
  /// filled in for each part.
  std::vector<double> passOn(std::vector<double> asked, bool aroundMemories,
                             std::vector<double> *limits) const;
  /// Fills in what each of `readers` reads; `threads` are the CPUs in use in
  /// each core. `limits`, if any, tells what they waited for.
  void read(std::vector<Reader> &readers,
            const std::vector<MemoryShares> &memories,
            std::span<const unsigned> threads, Limits *limits = nullptr) const;
  /// Slows down those who read over links.
  void readOverLinks(std::vector<Reader> &readers,
                     const std::vector<MemoryShares> &memories,
                     Limits *limits) const;
  /// The share of `memories` that is outside of `part`.
  double outsideOf(size_t part, const MemoryShares &memories) const;
  /// The CPUs of the ranks in use in each core.
  std::vector<unsigned> threadsOf(std::span<const Reader> readers) const;
  /// What the slowest rank reads if all of its CPUs wait for the slowest.
  static double bytesOfSlowest(std::span<const Reader> readers,
                               const std::vector<RankCpus> &ranks);
  /// Divides the time of `reader`, from what it meets last to itself.
  ReadingShares sharesOf(const Reader &reader, const MemoryShares &memories,
                         const Limits &limits) const;
  /// For a line from one to another of `readers`, in the mean. `inside` has a
  /// zero for each part, and is left so.
  double handoffSeconds(std::span<const Reader> readers,
                        std::vector<unsigned> &inside) const;

  double coreFlopsPerSecond = 0;
  double coreBytesPerSecond = 0;
  double remoteShare = 1;
  /// The share of its time that the system's own work takes of a CPU.
  double systemShare = 0;
  std::vector<Part> parts;
  /// All of `parts`, each before the one around it.
  std::vector<size_t> inwardsOut;
  /// Those of them that have links of a known bandwidth, and those that are
  /// memories outside the tree.
  std::vector<size_t> linked, beside;
  /// By the CPU's index, ascending.
  std::vector<Place> places;
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_PREDICTION_LATENCYMODEL_H
