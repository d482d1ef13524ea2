//===- MemoryLedger.cpp - Memory that several models share ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Memory/MemoryLedger.h"

#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/CheckedMath.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

using namespace sandwich;

// As in `planMemory`, sizes beyond what 64 bits hold are as large as they get.
static uint64_t sum(uint64_t a, uint64_t b) {
  return checkedAdd(a, b).value_or(UINT64_MAX);
}

static uint64_t product(uint64_t a, uint64_t b) {
  return checkedMultiply(a, b).value_or(UINT64_MAX);
}

static uint64_t difference(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}

//===----------------------------------------------------------------------===//
// What a model holds
//===----------------------------------------------------------------------===//

namespace {
/// A model that holds memory, or is expected to.
struct Entry {
  std::string model;
  MemoryNeeds needs;
  uint64_t kvBlocks = 0;
  /// Weights that are read again and again keep nothing from others.
  bool weightsStream = false;
  bool expected = false;
  ReservationUse use = {};

  bool sharesTheRest() const { return expected && !needs.kvMemory; }

  /// Memory of its own of one rank.
  uint64_t ownBytes() const {
    uint64_t bytes = sum(sum(needs.workspace, needs.logits),
                         sum(needs.program, product(kvBlocks, needs.kvBlock)));
    return needs.weightsCopied ? sum(bytes, needs.weights) : bytes;
  }
  /// Of which so many are in use.
  uint64_t ownBytesInUse(uint64_t rank) const {
    return use.bytes ? std::min(use.bytes(rank), ownBytes()) : 0;
  }
  /// Pages of its file that `ranks` ranks map, the first one among them or not.
  uint64_t mappedBytes(uint64_t ranks, bool first) const {
    const uint64_t own =
        needs.weightsCopied ? 0 : product(needs.weights, ranks);
    return first ? sum(own, needs.sharedWeights) : own;
  }
};

/// What of an entry is below a limit.
struct Held {
  /// All of it, and what of that the system counts as available all the same.
  uint64_t bytes = 0;
  uint64_t uncounted = 0;
  /// Of pages of files alone, which are in both.
  uint64_t mapped = 0;
};
} // namespace

/// The ranks of this host that `limit` is about.
static std::vector<uint64_t> ranksBelow(const MemoryNeeds &needs,
                                        const MemoryLimit &limit) {
  // The address space is one of each process, and other ranks have their own.
  if (limit.countsMappedFiles)
    return {0};
  std::vector<uint64_t> ranks;
  for (uint64_t rank = 0; rank < needs.ranks; ++rank)
    if (!limit.numaNode ||
        (rank < needs.nodes.size() && needs.nodes[rank] == limit.numaNode))
      ranks.push_back(rank);
  return ranks;
}

static Held heldBelow(const Entry &entry, const MemoryLimit &limit) {
  const std::vector<uint64_t> ranks = ranksBelow(entry.needs, limit);
  if (ranks.empty())
    return {};
  const bool first = ranks.front() == 0;
  const uint64_t exchange = first ? entry.needs.exchange : 0;
  const uint64_t files = entry.mappedBytes(ranks.size(), first);
  Held held;
  if (limit.countsMappedFiles) {
    held.bytes =
        sum(sum(entry.ownBytes(), entry.needs.stacks), sum(exchange, files));
    held.uncounted = entry.use.mapped ? 0 : held.bytes;
    return held;
  }
  for (uint64_t rank : ranks) {
    const uint64_t own = entry.ownBytes();
    held.bytes = sum(held.bytes, own);
    held.uncounted = sum(held.uncounted, own - entry.ownBytesInUse(rank));
  }
  held.bytes = sum(held.bytes, exchange);
  if (!entry.use.mapped)
    held.uncounted = sum(held.uncounted, exchange);
  // Pages of files always count as available.
  if (!entry.weightsStream)
    held.mapped = files;
  held.bytes = sum(held.bytes, held.mapped);
  held.uncounted = sum(held.uncounted, held.mapped);
  return held;
}

//===----------------------------------------------------------------------===//
// MemoryReservation
//===----------------------------------------------------------------------===//

struct MemoryReservation::State {
  MemoryLedger::LimitReader readLimits;
  mutable std::mutex mutex;
  /// In the order in which they came.
  std::map<uint64_t, Entry> entries;
  uint64_t next = 0;

  /// The limits for a model of `needs`, without what all entries but `own`
  /// hold. Under the mutex.
  std::vector<MemoryLimit> limitsFor(const MemoryNeeds &needs,
                                     std::optional<uint64_t> own) const;
  /// Takes what others hold from `limit`.
  void takeHeld(const MemoryNeeds &needs, std::optional<uint64_t> own,
                MemoryLimit &limit) const;
};

MemoryReservation::MemoryReservation(std::shared_ptr<State> state,
                                     uint64_t number)
    : state(std::move(state)), number(number), process(::getpid()) {}

MemoryReservation::MemoryReservation(MemoryReservation &&other) noexcept
    : state(std::move(other.state)), number(other.number),
      process(other.process) {}

MemoryReservation &
MemoryReservation::operator=(MemoryReservation &&other) noexcept {
  if (this != &other) {
    release();
    state = std::move(other.state);
    number = other.number;
    process = other.process;
  }
  return *this;
}

void MemoryReservation::release() {
  // In a fork the mutex may be held for ever.
  if (state && ::getpid() == process) {
    std::lock_guard lock(state->mutex);
    state->entries.erase(number);
  }
  state.reset();
}

void MemoryReservation::setUse(ReservationUse use) {
  if (!state || ::getpid() != process)
    return;
  std::lock_guard lock(state->mutex);
  state->entries.at(number).use = std::move(use);
}

//===----------------------------------------------------------------------===//
// MemoryLedger
//===----------------------------------------------------------------------===//

/// "3 GiB of a.sandwich", or "3 GiB that a.sandwich is to get"
static std::string nameHolder(const Entry &entry, uint64_t bytes) {
  return formatBytes(bytes) + (entry.expected
                                   ? " that " + entry.model + " is to get"
                                   : " of " + entry.model);
}

/// "a, b and c"
static std::string enumerate(const std::vector<std::string> &items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  return text;
}

void MemoryReservation::State::takeHeld(const MemoryNeeds &needs,
                                        std::optional<uint64_t> own,
                                        MemoryLimit &limit) const {
  std::vector<std::string> holders;
  // What the model itself maps, others' pages of the same file are as well.
  std::map<std::string, uint64_t> mapped;
  if (!needs.weightsFile.empty() && !needs.weightsCopied)
    mapped[needs.weightsFile] = UINT64_MAX;
  for (const auto &[number, entry] : entries) {
    const Held held = heldBelow(entry, limit);
    if (number == own || held.bytes == 0)
      continue;
    uint64_t uncounted = held.uncounted;
    if (!entry.needs.weightsFile.empty()) {
      uint64_t &already = mapped[entry.needs.weightsFile];
      uncounted -= std::min(held.mapped, already);
      already = std::max(already, held.mapped);
    }
    limit.available = difference(limit.available, uncounted);
    limit.sharers += entry.sharesTheRest();
    holders.push_back(nameHolder(entry, held.bytes));
  }
  if (!holders.empty())
    limit.where += " beside " + enumerate(holders);
}

std::vector<MemoryLimit>
MemoryReservation::State::limitsFor(const MemoryNeeds &needs,
                                    std::optional<uint64_t> own) const {
  std::set<unsigned> nodes;
  for (std::optional<unsigned> node : needs.nodes)
    if (node)
      nodes.insert(*node);
  std::vector<MemoryLimit> limits = readLimits({nodes.begin(), nodes.end()});
  for (MemoryLimit &limit : limits)
    takeHeld(needs, own, limit);
  return limits;
}

MemoryLedger::MemoryLedger(LimitReader readLimits)
    : state(std::make_shared<MemoryReservation::State>()) {
  state->readLimits = std::move(readLimits);
  if (!state->readLimits)
    state->readLimits = [](const std::vector<unsigned> &numaNodes) {
      return readMemoryLimits(numaNodes);
    };
}

void MemoryLedger::expect(const std::string &model, const MemoryNeeds &needs) {
  std::lock_guard lock(state->mutex);
  state->entries.emplace(state->next++, Entry{.model = model,
                                              .needs = needs,
                                              .kvBlocks = leastKVBlocks(needs),
                                              .expected = true});
}

/// The entry of a model that is expected, if there is one.
static std::optional<uint64_t>
findExpected(const std::map<uint64_t, Entry> &entries,
             const std::string &model) {
  for (const auto &[number, entry] : entries)
    if (entry.expected && entry.model == model)
      return number;
  return std::nullopt;
}

void MemoryLedger::forget(const std::string &model) {
  std::lock_guard lock(state->mutex);
  if (std::optional<uint64_t> found = findExpected(state->entries, model))
    state->entries.erase(*found);
}

Result<MemoryLedger::Reserved> MemoryLedger::reserve(const std::string &model,
                                                     const MemoryNeeds &needs) {
  std::lock_guard lock(state->mutex);
  const std::optional<uint64_t> expected = findExpected(state->entries, model);
  SANDWICH_ASSIGN_OR_RETURN(
      MemoryPlan plan, planMemory(needs, state->limitsFor(needs, expected)));
  const uint64_t number = state->next++;
  state->entries.emplace(number, Entry{.model = model,
                                       .needs = needs,
                                       .kvBlocks = plan.kvBlocks,
                                       .weightsStream = plan.weightsStream});
  if (expected)
    state->entries.erase(*expected);
  return Reserved{std::move(plan), MemoryReservation(state, number)};
}

Result<MemoryPlan> MemoryLedger::planAgain(const MemoryReservation &reservation,
                                           const MemoryNeeds &needs) {
  std::lock_guard lock(state->mutex);
  return planMemory(needs, state->limitsFor(needs, reservation.number));
}

std::vector<MemoryLedger::Holding> MemoryLedger::holdings() const {
  std::lock_guard lock(state->mutex);
  std::vector<Holding> holdings;
  for (const auto &[number, entry] : state->entries) {
    if (entry.expected)
      continue;
    const Held held = heldBelow(entry, MemoryLimit{});
    holdings.push_back(
        {.model = entry.model,
         .bytes = held.bytes,
         .kvCache = product(product(entry.kvBlocks, entry.needs.kvBlock),
                            entry.needs.ranks),
         .mapped = held.mapped,
         .inUse = held.bytes - held.uncounted});
  }
  return holdings;
}
