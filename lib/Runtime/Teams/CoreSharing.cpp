//===- CoreSharing.cpp - Who of several models runs when ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/CoreSharing.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// CoreDemand
//===----------------------------------------------------------------------===//

static std::vector<unsigned> unionOf(const std::vector<unsigned> &one,
                                     const std::vector<unsigned> &other) {
  std::vector<unsigned> all;
  std::ranges::set_union(one, other, std::back_inserter(all));
  return all;
}

void CoreDemand::add(const std::vector<std::vector<unsigned>> &placement) {
  std::set<unsigned> kept;
  for (const std::vector<unsigned> &thread : placement) {
    if (thread.size() == 1)
      kept.insert(thread.front());
    else
      ++floating;
  }
  cpus = unionOf(cpus, {kept.begin(), kept.end()});
}

void CoreDemand::addTakingTurns(const CoreDemand &other) {
  cpus = unionOf(cpus, other.cpus);
  floating = std::max(floating, other.floating);
}

//===----------------------------------------------------------------------===//
// CoreSharing
//===----------------------------------------------------------------------===//

static bool shareCpus(const std::vector<unsigned> &one,
                      const std::vector<unsigned> &other) {
  return std::ranges::any_of(one, [&](unsigned cpu) {
    return std::ranges::binary_search(other, cpu);
  });
}

class CoreSharing::Taken {
public:
  explicit Taken(uint64_t cores) : cores(cores) {}

  bool hasRoomFor(const CoreDemand &demand) const {
    if (std::ranges::any_of(demands, [&](const CoreDemand *taken) {
          return shareCpus(taken->cpus, demand.cpus);
        }))
      return false;
    // A team that is larger than the process's share runs alone.
    return count == 0 || (floating == 0 && demand.floating == 0) ||
           count + demand.count() <= cores;
  }
  /// `demand` has to live as long as this.
  void add(const CoreDemand &demand) {
    demands.push_back(&demand);
    count += demand.count();
    floating += demand.floating;
  }

private:
  const uint64_t cores;
  std::vector<const CoreDemand *> demands;
  uint64_t count = 0;
  uint64_t floating = 0;
};

bool CoreSharing::conflict(const CoreDemand &one,
                           const CoreDemand &other) const {
  Taken taken(options.cores);
  taken.add(one);
  return !taken.hasRoomFor(other);
}

CoreSharing::Member CoreSharing::join(double weight) {
  members.emplace(nextMember, Entry{.weight = weight});
  return nextMember++;
}

void CoreSharing::leave(Member member) { members.erase(member); }

void CoreSharing::request(Member member, const CoreDemand &demand, double now) {
  Entry &entry = members.at(member);
  entry.demand = demand;
  entry.state = State::Waiting;
  entry.requestedAt = now;
  entry.request = nextRequest++;
  // Else one that was idle for an hour had the cores to itself for the next.
  for (const auto &[number, other] : members)
    if (number != member && conflict(entry.demand, other.demand))
      entry.attained =
          std::max(entry.attained, other.attained - other.lastStep);
}

void CoreSharing::release(Member member, double now) {
  Entry &entry = members.at(member);
  const double seconds = now - entry.grantedAt;
  const double used = seconds * static_cast<double>(entry.demand.count());
  entry.state = State::Idle;
  entry.awake = true;
  entry.awakeOn = entry.demand;
  entry.keptUntil = now + std::min(seconds, options.longestPause);
  entry.lastStep = used / entry.weight;
  entry.attained += entry.lastStep;
  entry.use.coreSeconds += used;
}

bool CoreSharing::isBefore(const Entry &one, const Entry &other,
                           double now) const {
  const bool overdue = isOverdue(one, now);
  if (overdue != isOverdue(other, now))
    return overdue;
  if (!overdue && one.attained != other.attained)
    return one.attained < other.attained;
  return one.request < other.request;
}

std::optional<double> CoreSharing::keptFromUntil(const Entry &entry,
                                                 double now) const {
  if (isOverdue(entry, now))
    return std::nullopt;
  std::optional<double> until;
  for (const auto &[number, other] : members)
    if (other.state == State::Idle && now < other.keptUntil &&
        other.attained < entry.attained &&
        conflict(other.awakeOn, entry.demand))
      until = std::max(until.value_or(0), other.keptUntil);
  return until;
}

std::vector<CoreSharing::Grant> CoreSharing::grant(double now) {
  Taken taken(options.cores);
  std::vector<std::pair<Member, Entry *>> waiting;
  for (auto &[member, entry] : members) {
    if (entry.state == State::Holding)
      taken.add(entry.demand);
    else if (entry.state == State::Waiting)
      waiting.emplace_back(member, &entry);
  }
  std::ranges::sort(waiting, [&](const auto &one, const auto &other) {
    return isBefore(*one.second, *other.second, now);
  });
  retry.reset();
  std::vector<Grant> grants;
  for (auto &[member, entry] : waiting) {
    const bool hasRoom = taken.hasRoomFor(entry->demand);
    // What one waits for is not given to those behind it: it would never get
    // many cores at once.
    taken.add(entry->demand);
    if (!hasRoom)
      continue;
    if (const std::optional<double> until = keptFromUntil(*entry, now)) {
      retry = std::min(retry.value_or(*until), *until);
      continue;
    }
    entry->state = State::Holding;
    entry->grantedAt = now;
    ++entry->use.steps;
    entry->use.waits += now > entry->requestedAt;
    entry->use.secondsWaited += now - entry->requestedAt;
    grants.push_back({member, {}});
  }
  for (Grant &grant : grants)
    for (auto &[number, other] : members)
      if (other.state != State::Holding && other.awake &&
          conflict(members.at(grant.member).demand, other.awakeOn)) {
        other.awake = false;
        grant.displaced.push_back(number);
      }
  return grants;
}
