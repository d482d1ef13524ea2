//===- CoreArbiter.cpp - Cores that several models use --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/CoreArbiter.h"

#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// CoreArbiter
//===----------------------------------------------------------------------===//

Result<std::shared_ptr<CoreArbiter>> CoreArbiter::create() {
  SANDWICH_ASSIGN_OR_RETURN(const CpuBudget budget, readCpuBudget());
  return std::make_shared<CoreArbiter>(
      CoreSharingOptions{.cores = budget.threads()});
}

double CoreArbiter::now() const { return secondsSince(start); }

CoreMember &CoreArbiter::memberOf(CoreSharing::Member number) const {
  return **std::ranges::find(members, number, &CoreMember::number);
}

CoreArbiter::Wakes CoreArbiter::grant(double time) {
  Wakes wakes;
  for (const CoreSharing::Grant &grant : sharing.grant(time)) {
    for (const CoreSharing::Member number : grant.displaced)
      if (const CoreMember &other = memberOf(number); other.displaced)
        other.displaced();
    CoreMember &member = memberOf(grant.member);
    member.granted = true;
    if (member.waits)
      wakes.push_back(member.changed);
  }
  // One of those who wait has to look at the clock for all.
  if (sharing.retryAt())
    for (CoreMember *member : members)
      if (member->waits && !member->granted)
        wakes.push_back(member->changed);
  return wakes;
}

void CoreArbiter::wake(const Wakes &wakes) {
  for (const auto &each : wakes)
    each->notify_one();
}

void CoreArbiter::await(CoreMember &member,
                        std::unique_lock<std::mutex> &lock) {
  const std::optional<double> retry = sharing.retryAt();
  if (!retry) {
    member.changed->wait(lock);
    return;
  }
  const auto moment =
      start + std::chrono::ceil<std::chrono::steady_clock::duration>(
                  std::chrono::duration<double>(*retry));
  if (member.changed->wait_until(lock, moment) != std::cv_status::timeout ||
      member.granted)
    return;
  const Wakes wakes = grant(now());
  lock.unlock();
  wake(wakes);
  lock.lock();
}

std::vector<CoreArbiter::MemberUse> CoreArbiter::uses() const {
  std::lock_guard lock(mutex);
  std::vector<MemberUse> uses;
  uses.reserve(members.size());
  for (const CoreMember *member : members)
    uses.push_back({member->name, sharing.useOf(member->number)});
  return uses;
}

//===----------------------------------------------------------------------===//
// CoreLease
//===----------------------------------------------------------------------===//

CoreLease &CoreLease::operator=(CoreLease &&other) noexcept {
  if (this != &other) {
    release();
    member = std::exchange(other.member, nullptr);
    waited = std::exchange(other.waited, 0);
  }
  return *this;
}

void CoreLease::release() {
  if (CoreMember *held = std::exchange(member, nullptr))
    held->release();
}

//===----------------------------------------------------------------------===//
// CoreMember
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CoreMember>>
CoreMember::join(std::shared_ptr<CoreArbiter> arbiter, std::string name,
                 double weight) {
  if (!std::isfinite(weight) || weight <= 0)
    return makeError(ErrorKind::InvalidArgument, "the weight of ", name, " is ",
                     weight, "; it must be a number more than 0");
  std::unique_ptr<CoreMember> member(
      new CoreMember(std::move(arbiter), std::move(name)));
  CoreArbiter &own = *member->arbiter;
  std::lock_guard lock(own.mutex);
  own.members.reserve(own.members.size() + 1);
  member->number = own.sharing.join(weight);
  own.members.push_back(member.get());
  return member;
}

CoreMember::~CoreMember() {
  // In a fork the mutex may be held for ever.
  if (::getpid() != process)
    return;
  std::lock_guard lock(arbiter->mutex);
  // It is none where joining failed.
  if (std::erase(arbiter->members, this) > 0)
    arbiter->sharing.leave(number);
}

void CoreMember::onDisplaced(std::function<void()> callback) {
  if (::getpid() != process)
    return;
  std::lock_guard lock(arbiter->mutex);
  displaced = std::move(callback);
}

CoreLease CoreMember::acquire(const CoreDemand &demand) {
  std::unique_lock lock(arbiter->mutex);
  const double asked = arbiter->now();
  arbiter->sharing.request(number, demand, asked);
  const CoreArbiter::Wakes wakes = arbiter->grant(asked);
  if (!wakes.empty()) {
    lock.unlock();
    CoreArbiter::wake(wakes);
    lock.lock();
  }
  double waited = 0;
  if (!granted) {
    waits = true;
    while (!granted)
      arbiter->await(*this, lock);
    waits = false;
    waited = arbiter->now() - asked;
  }
  granted = false;
  held = true;
  return {*this, waited};
}

void CoreMember::release() {
  CoreArbiter::Wakes wakes;
  {
    std::lock_guard lock(arbiter->mutex);
    const double time = arbiter->now();
    held = false;
    arbiter->sharing.release(number, time);
    wakes = arbiter->grant(time);
  }
  CoreArbiter::wake(wakes);
}
