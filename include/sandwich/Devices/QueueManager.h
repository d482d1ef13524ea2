//===- QueueManager.h - Who takes the next query ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Algorithm 1 of WindVE for any number of devices: a query goes to the first
/// device, in the order of preference, whose queue is not full; where all are
/// full, the service is busy. Any number of threads may call at a time; none
/// waits for another.
///
/// Each device is one 64-bit word: how many queries it has, how many it may
/// have, and whether it is closed. A decision is one compare-exchange of that
/// word, so that a depth or a closing takes effect between two queries and
/// never inside one. Words lie on cache lines of their own.
///
/// Memory order: taking a slot acquires and giving it back releases, so that
/// whoever gets the slot of a query sees what was done before the slot was
/// given back. Changes of depths and closings acquire and release likewise: who
/// reads of a failed device that it is open again sees how it was repaired.
/// The counts are relaxed; each is exact, and together they are a snapshot only
/// while nobody calls.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_QUEUEMANAGER_H
#define SANDWICH_DEVICES_QUEUEMANAGER_H

#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Result.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace sandwich {

/// What became of the queries that asked for one device.
struct QueueCounts {
  /// Taken by this device.
  uint64_t admitted = 0;
  /// Found this device full or closed, and went on to the next one or were
  /// refused.
  uint64_t overflowed = 0;
};

/// Shared by threads; neither copied nor moved.
class QueueManager {
public:
  /// `depths`: of each device's queue, the most preferred first; with a depth
  /// of 0 a device gets no queries. Errors (InvalidArgument): no devices or
  /// more than `maxDevices`; a depth above `maxQueueDepth`.
  static Result<std::unique_ptr<QueueManager>>
  create(std::span<const uint32_t> depths);

  size_t devices() const { return count; }

  /// Takes a slot of the first device that has one and returns its number; the
  /// caller gives it back with `release`. Nothing: BUSY.
  std::optional<size_t> admit();

  /// Gives back a slot of `device`, when its query is answered or moved to
  /// another device. False: there was none to give back, which is the caller's
  /// bug; nothing changes.
  bool release(size_t device);

  /// Takes effect with the next query. Queries beyond a smaller depth stay
  /// where they are. Error (InvalidArgument): more than `maxQueueDepth`.
  Status setDepth(size_t device, uint32_t depth);

  /// A closed device, as one that failed, gets no queries; those it has keep
  /// their slots until they are released.
  void close(size_t device);
  void reopen(size_t device);

  /// Queries that hold a slot of `device`.
  uint32_t queued(size_t device) const;
  uint32_t depth(size_t device) const;
  bool isClosed(size_t device) const;
  QueueCounts counts(size_t device) const;
  /// Queries that were refused.
  uint64_t busy() const { return refused.load(std::memory_order_relaxed); }

private:
  /// As large as two lines of x86, which prefetches them in pairs.
  static constexpr size_t lineBytes = 128;

  struct alignas(lineBytes) Queue {
    std::atomic<uint64_t> state{0};
    std::atomic<uint64_t> admitted{0};
    std::atomic<uint64_t> overflowed{0};
  };

  explicit QueueManager(size_t count)
      : count(count), queues(std::make_unique<Queue[]>(count)) {}

  /// Replaces the bits `mask` of the state of `device`.
  void replace(size_t device, uint64_t mask, uint64_t bits);

  const size_t count;
  const std::unique_ptr<Queue[]> queues;
  alignas(lineBytes) std::atomic<uint64_t> refused{0};
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_QUEUEMANAGER_H
