//===- HardwareCounters.cpp - What a team's threads make cores do ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/HardwareCounters.h"
#include "sandwich/Support/ElapsedTime.h"

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

namespace {
struct EventDescription {
  const char *name;
  uint32_t type;
  uint64_t config;
  /// What this is a part of. Both run at the same time, so that their ratio is
  /// one of the same work; and this is nothing without that.
  std::optional<CountedEvent> whole;
};
} // namespace

static constexpr uint64_t cacheLoads(uint64_t cache, uint64_t result) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16;
}

static const EventDescription &describe(CountedEvent event) {
  using enum CountedEvent;
  constexpr auto all = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
  constexpr auto miss = PERF_COUNT_HW_CACHE_RESULT_MISS;
  static const std::array<EventDescription, countedEvents> descriptions = {{
      {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, {}},
      {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, {}},
      {"LLC-loads",
       PERF_TYPE_HW_CACHE,
       cacheLoads(PERF_COUNT_HW_CACHE_LL, all),
       {}},
      {"LLC-load-misses", PERF_TYPE_HW_CACHE,
       cacheLoads(PERF_COUNT_HW_CACHE_LL, miss), LastLevelCacheLoads},
      {"dTLB-loads",
       PERF_TYPE_HW_CACHE,
       cacheLoads(PERF_COUNT_HW_CACHE_DTLB, all),
       {}},
      {"dTLB-load-misses", PERF_TYPE_HW_CACHE,
       cacheLoads(PERF_COUNT_HW_CACHE_DTLB, miss), DataTlbLoads},
      {"node-loads",
       PERF_TYPE_HW_CACHE,
       cacheLoads(PERF_COUNT_HW_CACHE_NODE, all),
       {}},
      {"node-load-misses", PERF_TYPE_HW_CACHE,
       cacheLoads(PERF_COUNT_HW_CACHE_NODE, miss), NodeLoads},
      {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, {}},
      {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, {}},
  }};
  return descriptions[static_cast<size_t>(event)];
}

const char *sandwich::eventName(CountedEvent event) {
  return describe(event).name;
}

bool sandwich::isHardwareEvent(CountedEvent event) {
  return describe(event).type != PERF_TYPE_SOFTWARE;
}

/// The event whose counter `event` runs together with.
static std::optional<CountedEvent> groupLeader(CountedEvent event) {
  if (event == CountedEvent::Cycles)
    return CountedEvent::Instructions;
  return describe(event).whole;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

int PerfEvents::open(const perf_event_attr &attributes, pid_t thread,
                     int group) {
  constexpr int anyCpu = -1;
  long handle = ::syscall(SYS_perf_event_open, &attributes, thread, anyCpu,
                          group, PERF_FLAG_FD_CLOEXEC);
  return handle < 0 ? -errno : static_cast<int>(handle);
}

int PerfEvents::read(int handle, Count &count) {
  // In the order that `read_format` below stands for.
  std::array<uint64_t, 3> numbers{};
  ssize_t bytes = ::read(handle, numbers.data(), sizeof(numbers));
  if (bytes != sizeof(numbers))
    return bytes < 0 ? -errno : -EIO;
  count = {numbers[0], numbers[1], numbers[2]};
  return 0;
}

void PerfEvents::close(int handle) { ::close(handle); }

std::optional<int> PerfEvents::paranoia() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  if (!(file >> level))
    return std::nullopt;
  return level;
}

/// Why perf_event_open refused with `error`, and what would make it work.
std::string HardwareCounters::refusal(CountedEvent event, int error,
                                      size_t threads) {
  switch (error) {
  case ENOENT:
  case EINVAL:
  case ENODEV:
  case EOPNOTSUPP:
    return "the processor has no such counter that the kernel knows, or the "
           "hypervisor hides it; a virtual machine needs a virtual PMU, "
           "otherwise measure outside of it";
  case EACCES:
  case EPERM: {
    // Hardware events are counted outside of the kernel, others everywhere.
    int enough = isHardwareEvent(event) ? 2 : 1;
    std::optional<int> level = system.paranoia();
    if (level && *level > enough)
      return "the kernel does not permit it: perf_event_paranoid is " +
             std::to_string(*level) +
             "; have the administrator run 'sysctl "
             "kernel.perf_event_paranoid=" +
             std::to_string(enough) + "', or give CAP_PERFMON";
    return "it is not permitted, though perf_event_paranoid would allow it; a "
           "container's seccomp profile must permit perf_event_open, or give "
           "CAP_PERFMON";
  }
  case ENOSYS:
    return "the kernel has no perf_event_open, or a sandbox hides it; it needs "
           "CONFIG_PERF_EVENTS";
  case EMFILE:
    return "too many open files; 'ulimit -n' must allow " +
           std::to_string(threads * countedEvents) + " more";
  default:
    return std::string("the kernel refuses it: ") + std::strerror(error);
  }
}

//===----------------------------------------------------------------------===//
// HardwareCounters
//===----------------------------------------------------------------------===//

static std::vector<pid_t> threadsOf(PhaseTeam &team) {
  std::vector<pid_t> threads(team.size());
  team.run(
      team.size(),
      [](void *context, int32_t thread) {
        static_cast<pid_t *>(context)[thread] =
            static_cast<pid_t>(::syscall(SYS_gettid));
      },
      threads.data());
  return threads;
}

HardwareCounters::HardwareCounters(PhaseTeam &team, PerfEvents &system)
    : team(team), system(system) {
  std::vector<pid_t> threads = threadsOf(team);
  for (size_t i = 0; i < countedEvents; ++i)
    openEvent(static_cast<CountedEvent>(i), threads);
}

HardwareCounters::~HardwareCounters() {
  for (Event &event : events)
    giveUp(event, "");
}

void HardwareCounters::giveUp(Event &event, std::string error) {
  for (const Counter &counter : event.counters)
    system.close(counter.handle);
  event.counters.clear();
  event.error = std::move(error);
}

void HardwareCounters::openEvent(CountedEvent event,
                                 const std::vector<pid_t> &threads) {
  const EventDescription &description = describe(event);
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = description.type;
  attributes.config = description.config;
  attributes.read_format =
      PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  // What the system does to a thread happens in the kernel.
  attributes.exclude_kernel = attributes.exclude_hv = isHardwareEvent(event);

  Event &state = events[static_cast<size_t>(event)];
  const std::vector<Counter> *leaders = nullptr;
  if (std::optional<CountedEvent> leader = groupLeader(event))
    leaders = &events[static_cast<size_t>(*leader)].counters;
  for (size_t thread = 0; thread < threads.size(); ++thread) {
    int handle = -EINVAL;
    bool grouped = leaders && !leaders->empty();
    if (grouped)
      handle =
          system.open(attributes, threads[thread], (*leaders)[thread].handle);
    // Not every two events fit into one group.
    if (!grouped || handle == -EINVAL)
      handle = system.open(attributes, threads[thread], -1);
    if (handle < 0)
      return giveUp(state, refusal(event, -handle, threads.size()));
    state.counters.push_back({handle, {}, {}});
  }
}

HardwareCounters::Usage HardwareCounters::teamUsage() {
  std::vector<rusage> threads(team.size());
  team.run(
      team.size(),
      [](void *context, int32_t thread) {
        ::getrusage(RUSAGE_THREAD, static_cast<rusage *>(context) + thread);
      },
      threads.data());
  Usage sum;
  for (const rusage &usage : threads) {
    for (const timeval &time : {usage.ru_utime, usage.ru_stime})
      sum.cpuMicroseconds += int64_t{time.tv_sec} * 1000000 + time.tv_usec;
    sum.minorFaults += usage.ru_minflt;
    sum.majorFaults += usage.ru_majflt;
    sum.voluntarySwitches += usage.ru_nvcsw;
    sum.involuntarySwitches += usage.ru_nivcsw;
  }
  return sum;
}

void HardwareCounters::reset() {
  for (Event &event : events)
    for (Counter &counter : event.counters)
      counter.counted = {};
  seconds = 0;
  used = {};
}

// Counters run all the time and are read twice: resetting one would leave the
// times that its extrapolation needs.
void HardwareCounters::start() {
  usageAtStart = teamUsage();
  for (Event &event : events)
    for (Counter &counter : event.counters)
      if (int error = system.read(counter.handle, counter.atStart)) {
        giveUp(event,
               std::string("it cannot be read: ") + std::strerror(-error));
        break;
      }
  startTime = std::chrono::steady_clock::now();
}

void HardwareCounters::stop() {
  seconds += secondsSince(startTime);
  for (Event &event : events)
    for (Counter &counter : event.counters) {
      PerfEvents::Count now;
      if (int error = system.read(counter.handle, now)) {
        giveUp(event,
               std::string("it cannot be read: ") + std::strerror(-error));
        break;
      }
      auto add = [&](uint64_t PerfEvents::Count::*part) {
        counter.counted.*part += now.*part - counter.atStart.*part;
      };
      add(&PerfEvents::Count::value);
      add(&PerfEvents::Count::enabledNanoseconds);
      add(&PerfEvents::Count::runningNanoseconds);
    }
  Usage usage = teamUsage();
  auto add = [&](int64_t Usage::*part) {
    used.*part += usage.*part - usageAtStart.*part;
  };
  add(&Usage::cpuMicroseconds);
  add(&Usage::minorFaults);
  add(&Usage::majorFaults);
  add(&Usage::voluntarySwitches);
  add(&Usage::involuntarySwitches);
}

CounterReading::Event HardwareCounters::total(CountedEvent event) const {
  const Event &state = events[static_cast<size_t>(event)];
  if (!state.error.empty())
    return {makeError(state.error)};
  double value = 0;
  double enabled = 0;
  double running = 0;
  double enabledOfThoseThatRan = 0;
  for (const Counter &counter : state.counters) {
    auto enabledHere = static_cast<double>(counter.counted.enabledNanoseconds);
    auto runningHere = static_cast<double>(counter.counted.runningNanoseconds);
    enabled += enabledHere;
    if (runningHere <= 0)
      continue;
    running += runningHere;
    enabledOfThoseThatRan += enabledHere;
    value +=
        static_cast<double>(counter.counted.value) * enabledHere / runningHere;
  }
  if (running <= 0)
    return {makeError("the counter never ran: the processor's counters are in "
                      "use by others (a profiler, the kernel's NMI watchdog), "
                      "or the time was too short to take turns; measure more "
                      "repetitions")};
  // A thread that had no turn with the counter counts like the others.
  value *= enabled / enabledOfThoseThatRan;
  return {value, running / enabled};
}

CounterReading HardwareCounters::reading() const {
  CounterReading result;
  for (size_t i = 0; i < countedEvents; ++i) {
    auto event = static_cast<CountedEvent>(i);
    CounterReading::Event counted = total(event);
    // No team works without instructions, cycles and loads: such a counter
    // exists in name only. There may be no miss, but only where loads count.
    std::optional<CountedEvent> whole = describe(event).whole;
    bool mayBeZero = !isHardwareEvent(event) || (whole && result[*whole].count);
    if (counted.count && *counted.count == 0 && !mayBeZero)
      counted.count =
          makeError("the counter stays at zero: the processor or the "
                    "hypervisor has it in name only; measure outside of a "
                    "virtual machine");
    result[event] = std::move(counted);
  }
  result.seconds = seconds;
  result.cpuSeconds = static_cast<double>(used.cpuMicroseconds) / 1e6;
  result.pageFaults =
      static_cast<uint64_t>(used.minorFaults + used.majorFaults);
  result.majorPageFaults = static_cast<uint64_t>(used.majorFaults);
  result.voluntarySwitches = static_cast<uint64_t>(used.voluntarySwitches);
  result.involuntarySwitches = static_cast<uint64_t>(used.involuntarySwitches);
  return result;
}
