//===- QueueManager.cpp - Who takes the next query ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/QueueManager.h"

#include "sandwich/Devices/DeviceConfiguration.h"

using namespace sandwich;

// From the lowest bit: 32 of the number of queries, 31 of the depth, and
// whether the device is closed.
static constexpr int depthShift = 32;
static constexpr uint64_t queuedMask = (uint64_t{1} << depthShift) - 1;
static constexpr uint64_t closedMask = uint64_t{1} << 63;
static constexpr uint64_t depthMask = ~(queuedMask | closedMask);

static uint64_t queuedOf(uint64_t state) { return state & queuedMask; }
static uint64_t depthOf(uint64_t state) {
  return (state & depthMask) >> depthShift;
}

static Status checkDepth(size_t device, uint32_t depth) {
  if (depth > maxQueueDepth)
    return makeError(ErrorKind::InvalidArgument, "the queue of device ", device,
                     " cannot have a depth of ", depth, "; at most ",
                     maxQueueDepth);
  return {};
}

Result<std::unique_ptr<QueueManager>>
QueueManager::create(std::span<const uint32_t> depths) {
  if (depths.empty() || depths.size() > maxDevices)
    return makeError(ErrorKind::InvalidArgument, "there are ", depths.size(),
                     " devices; there must be 1 to ", maxDevices);
  std::unique_ptr<QueueManager> manager(new QueueManager(depths.size()));
  for (size_t device = 0; device < depths.size(); ++device)
    SANDWICH_RETURN_IF_ERROR(manager->setDepth(device, depths[device]));
  return manager;
}

std::optional<size_t> QueueManager::admit() {
  for (size_t device = 0; device < count; ++device) {
    Queue &queue = queues[device];
    uint64_t state = queue.state.load(std::memory_order_relaxed);
    while (!(state & closedMask) && queuedOf(state) < depthOf(state))
      if (queue.state.compare_exchange_weak(state, state + 1,
                                            std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
        queue.admitted.fetch_add(1, std::memory_order_relaxed);
        return device;
      }
    queue.overflowed.fetch_add(1, std::memory_order_relaxed);
  }
  refused.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

bool QueueManager::release(size_t device) {
  std::atomic<uint64_t> &state = queues[device].state;
  uint64_t before = state.load(std::memory_order_relaxed);
  do {
    if (queuedOf(before) == 0)
      return false;
  } while (!state.compare_exchange_weak(before, before - 1,
                                        std::memory_order_release,
                                        std::memory_order_relaxed));
  return true;
}

void QueueManager::replace(size_t device, uint64_t mask, uint64_t bits) {
  std::atomic<uint64_t> &state = queues[device].state;
  uint64_t before = state.load(std::memory_order_relaxed);
  while (!state.compare_exchange_weak(before, (before & ~mask) | bits,
                                      std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
    continue;
}

Status QueueManager::setDepth(size_t device, uint32_t depth) {
  SANDWICH_RETURN_IF_ERROR(checkDepth(device, depth));
  replace(device, depthMask, uint64_t{depth} << depthShift);
  return {};
}

void QueueManager::close(size_t device) {
  replace(device, closedMask, closedMask);
}

void QueueManager::reopen(size_t device) { replace(device, closedMask, 0); }

uint32_t QueueManager::queued(size_t device) const {
  return static_cast<uint32_t>(
      queuedOf(queues[device].state.load(std::memory_order_acquire)));
}

uint32_t QueueManager::depth(size_t device) const {
  return static_cast<uint32_t>(
      depthOf(queues[device].state.load(std::memory_order_acquire)));
}

bool QueueManager::isClosed(size_t device) const {
  return queues[device].state.load(std::memory_order_acquire) & closedMask;
}

QueueCounts QueueManager::counts(size_t device) const {
  const Queue &queue = queues[device];
  return {queue.admitted.load(std::memory_order_relaxed),
          queue.overflowed.load(std::memory_order_relaxed)};
}
