//===- HardwareCounters.h - What a team's threads make cores do -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Hardware counters of all threads of a team, from Linux's perf_event_open.
/// Every event is counted for each thread by itself, outside of the kernel, so
/// that perf_event_paranoid 2 suffices. Which events exist depends on the
/// processor, the hypervisor and the permissions: an event that cannot be
/// counted has an error instead of a number, and the others are still counted.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_HARDWARECOUNTERS_H
#define SANDWICH_RUNTIME_MEASUREMENT_HARDWARECOUNTERS_H

#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Support/Result.h"

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct perf_event_attr;

namespace sandwich {

enum class CountedEvent : uint8_t {
  Instructions,
  Cycles,
  LastLevelCacheLoads,
  LastLevelCacheLoadMisses,
  DataTlbLoads,
  DataTlbLoadMisses,
  /// Loads from memory, and those of them from another NUMA node's memory.
  NodeLoads,
  NodeLoadMisses,
  BusCycles,
  /// A software event: how often the system moved a thread to another CPU.
  CpuMigrations,
};

inline constexpr size_t countedEvents =
    static_cast<size_t>(CountedEvent::CpuMigrations) + 1;

/// As `perf list` has it, for output: "LLC-load-misses".
const char *eventName(CountedEvent event);

/// Whether the processor counts it, rather than the system.
bool isHardwareEvent(CountedEvent event);

/// The kernel's counters; tests replace it.
class PerfEvents {
public:
  /// What a counter has counted since it was opened. It ran less long than it
  /// was enabled where the processor has fewer counters than are open.
  struct Count {
    uint64_t value = 0;
    uint64_t enabledNanoseconds = 0;
    uint64_t runningNanoseconds = 0;
  };

  virtual ~PerfEvents() = default;

  /// Opens a counter of `thread` on whatever CPU it runs; `group` is a counter
  /// to run together with, or -1. Returns its handle, or the negative errno.
  virtual int open(const perf_event_attr &attributes, pid_t thread, int group);
  /// Returns 0, or the negative errno.
  virtual int read(int handle, Count &count);
  virtual void close(int handle);
  /// /proc/sys/kernel/perf_event_paranoid, or nothing where it cannot be read.
  virtual std::optional<int> paranoia();
};

/// What was counted between `start` and `stop` of a `HardwareCounters`.
struct CounterReading {
  struct Event {
    /// Sum of all threads, extrapolated to the whole time where the counter
    /// shared the hardware. Error: why there is none, and what would help.
    Result<double> count = makeError("nothing was counted");
    /// The share of the time that it did run, in [0, 1].
    double runningShare = 0;
  };

  /// By `CountedEvent`.
  std::array<Event, countedEvents> events;

  // What the system knows about threads whatever the permissions.

  /// From start to stop.
  double seconds = 0;
  /// CPU time of all threads, in the kernel and outside.
  double cpuSeconds = 0;
  uint64_t pageFaults = 0;
  /// Those that waited for a disk.
  uint64_t majorPageFaults = 0;
  /// A thread waited, or another took its core.
  uint64_t voluntarySwitches = 0;
  uint64_t involuntarySwitches = 0;

  const Event &operator[](CountedEvent event) const {
    return events[static_cast<size_t>(event)];
  }
  Event &operator[](CountedEvent event) {
    return events[static_cast<size_t>(event)];
  }
};

/// Counters of the threads of one team, which must live longer. Used by the
/// thread that calls `PhaseTeam::run`.
class HardwareCounters {
public:
  /// Opens what can be opened. `system` must live longer.
  HardwareCounters(PhaseTeam &team, PerfEvents &system);
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters &) = delete;
  HardwareCounters &operator=(const HardwareCounters &) = delete;

  /// Forgets what was counted.
  void reset();
  /// What happens from `start` to `stop` is added to what was counted.
  void start();
  void stop();
  CounterReading reading() const;

private:
  struct Counter {
    int handle = -1;
    PerfEvents::Count atStart;
    PerfEvents::Count counted;
  };
  struct Event {
    /// One for each thread; none if there is an error.
    std::vector<Counter> counters;
    std::string error;
  };
  /// What getrusage knows of one thread, in microseconds and counts.
  struct Usage {
    int64_t cpuMicroseconds = 0;
    int64_t minorFaults = 0;
    int64_t majorFaults = 0;
    int64_t voluntarySwitches = 0;
    int64_t involuntarySwitches = 0;
  };

  void openEvent(CountedEvent event, const std::vector<pid_t> &threads);
  void giveUp(Event &event, std::string error);
  std::string refusal(CountedEvent event, int error, size_t threads);
  Usage teamUsage();
  CounterReading::Event total(CountedEvent event) const;

  PhaseTeam &team;
  PerfEvents &system;
  std::array<Event, countedEvents> events;
  std::chrono::steady_clock::time_point startTime;
  double seconds = 0;
  Usage usageAtStart;
  Usage used;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_HARDWARECOUNTERS_H
