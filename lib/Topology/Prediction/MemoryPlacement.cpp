//===- MemoryPlacement.cpp - Ranks in the memories of a machine -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Prediction/LatencyModel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

using namespace sandwich;

namespace {

/// Bytes of a rank that look for room.
struct Claim {
  size_t rank;
  /// The memories that take them, the first one that has room before others.
  std::vector<size_t> memories;
  double bytes;
};

/// Lays claims into memories.
class Filler {
public:
  /// `room` is what each memory holds.
  Filler(std::vector<double> room, size_t ranks)
      : room(std::move(room)), amounts(ranks) {}

  /// Takes from `claims` what finds room.
  void fill(std::vector<Claim> &claims) {
    size_t turns = 0;
    for (const Claim &claim : claims)
      turns = std::max(turns, claim.memories.size());
    for (size_t turn = 0; turn < turns; ++turn) {
      std::map<size_t, double> asked;
      for (const Claim &claim : claims)
        if (turn < claim.memories.size())
          asked[claim.memories[turn]] += claim.bytes;
      for (Claim &claim : claims) {
        if (turn >= claim.memories.size() || claim.bytes == 0)
          continue;
        const size_t memory = claim.memories[turn];
        const double share = std::min(1.0, room[memory] / asked[memory]);
        if (share == 0)
          continue;
        amounts[claim.rank][memory] += share * claim.bytes;
        claim.bytes -= share * claim.bytes;
      }
      for (auto [memory, bytes] : asked)
        room[memory] = std::max(0.0, room[memory] - bytes);
    }
  }

  /// [rank][memory] Bytes laid since the last call.
  std::vector<std::map<size_t, double>> take() {
    return std::exchange(amounts,
                         std::vector<std::map<size_t, double>>(amounts.size()));
  }

private:
  std::vector<double> room;
  std::vector<std::map<size_t, double>> amounts;
};

} // namespace

/// Less is no shortage: sums of shares round.
static constexpr double leastBytes = 1;

/// Lays `bytes[rank]` of each rank into the memories of its `nodes`; `choices`
/// are those of ranks that are inside one. Returns what finds no room, by rank.
static std::vector<double>
fillClass(Filler &filler, const std::vector<std::vector<size_t>> &nodes,
          const std::vector<std::vector<size_t>> &choices,
          const std::vector<double> &bytes) {
  std::vector<Claim> claims;
  for (size_t rank = 0; rank < nodes.size(); ++rank)
    for (size_t node : nodes[rank])
      claims.push_back(
          {rank,
           nodes[rank].size() == 1 ? choices[rank] : std::vector<size_t>{node},
           bytes[rank] / static_cast<double>(nodes[rank].size())});
  filler.fill(claims);
  std::vector<double> left(nodes.size());
  for (const Claim &claim : claims)
    left[claim.rank] += claim.bytes;
  claims.clear();
  for (size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank].size() > 1 && left[rank] > 0)
      claims.push_back({rank, nodes[rank], left[rank]});
  filler.fill(claims);
  for (const Claim &claim : claims)
    left[claim.rank] = claim.bytes;
  return left;
}

/// The shares of `amounts`, in the order of the `choices`; none where there is
/// nothing.
static LatencyModel::MemoryShares
sharesOfBytes(const std::map<size_t, double> &amounts,
              const std::vector<size_t> &choices) {
  double sum = 0;
  for (auto [memory, bytes] : amounts)
    sum += bytes;
  LatencyModel::MemoryShares shares;
  for (size_t memory : choices)
    if (auto found = amounts.find(memory);
        found != amounts.end() && found->second > 0)
      shares.push_back({memory, found->second / sum});
  return shares;
}

std::vector<size_t> LatencyModel::fastestFirst(size_t node) const {
  std::vector<size_t> memories = {node};
  for (size_t part : beside)
    if (std::ranges::find(parts[part].besideNodes, node) !=
        parts[part].besideNodes.end())
      memories.push_back(part);
  std::ranges::stable_sort(memories, std::ranges::greater(), [&](size_t part) {
    return parts[part].bytesPerSecond;
  });
  return memories;
}

Result<LatencyModel::MemoryPlacement>
LatencyModel::place(const std::vector<RankCpus> &ranks,
                    std::span<const RankBytes> bytes) const {
  if (bytes.size() != ranks.size())
    return makeError(ranks.size(), " ranks have bytes for ", bytes.size());
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<std::vector<size_t>> nodes,
                            nodesOf(ranks));
  // Ranks of one node have the same choice, and there are many parts.
  std::map<size_t, std::vector<size_t>> ofNode;
  std::vector<std::vector<size_t>> choices = nodes;
  for (std::vector<size_t> &own : choices) {
    if (own.size() != 1)
      continue;
    auto [known, isNew] = ofNode.try_emplace(own.front());
    if (isNew)
      known->second = fastestFirst(own.front());
    own = known->second;
  }
  std::vector<double> room;
  room.reserve(parts.size());
  for (const Part &part : parts)
    room.push_back(part.bytes);
  Filler filler(std::move(room), ranks.size());

  std::vector<double> weights, others;
  for (const RankBytes &own : bytes) {
    weights.push_back(own.weights);
    others.push_back(own.others);
  }
  std::vector<double> lacking = fillClass(filler, nodes, choices, weights);
  const std::vector<std::map<size_t, double>> ofWeights = filler.take();
  const std::vector<double> more = fillClass(filler, nodes, choices, others);
  const std::vector<std::map<size_t, double>> ofOthers = filler.take();

  MemoryPlacement placement;
  size_t worst = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    lacking[rank] += more[rank];
    if (lacking[rank] > lacking[worst])
      worst = rank;
    MemoryShares own = sharesOfBytes(ofWeights[rank], choices[rank]);
    MemoryShares cache = sharesOfBytes(ofOthers[rank], choices[rank]);
    std::vector<unsigned> &used = placement.nodes.emplace_back();
    for (size_t memory : choices[rank])
      if (ofWeights[rank].contains(memory) || ofOthers[rank].contains(memory))
        used.push_back(parts[memory].index);
    placement.memories.weights.push_back(own.empty() ? cache : own);
    placement.memories.cache.push_back(cache.empty() ? std::move(own)
                                                     : std::move(cache));
  }
  if (lacking[worst] < leastBytes)
    return placement;
  MemoryShortage &shortage = placement.shortage.emplace();
  const std::set<size_t> shared(choices[worst].begin(), choices[worst].end());
  for (size_t memory : shared) {
    shortage.nodes.push_back(parts[memory].index);
    shortage.available += parts[memory].bytes;
  }
  std::ranges::sort(shortage.nodes);
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (std::ranges::any_of(choices[rank], [&](size_t memory) {
          return shared.contains(memory);
        })) {
      ++shortage.ranks;
      shortage.needed += bytes[rank].sum();
    }
  return placement;
}
