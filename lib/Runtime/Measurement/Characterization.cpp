//===- Characterization.cpp - What a phase asks of a machine --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/Characterization.h"

using namespace sandwich;

/// `scale` times the ratio of two events.
static Result<double> ratio(const CounterReading &reading, CountedEvent part,
                            CountedEvent whole, double scale = 1) {
  for (CountedEvent event : {part, whole})
    if (const Result<double> &count = reading[event].count; !count)
      return count.error().inContext(eventName(event));
  if (*reading[whole].count <= 0)
    return makeError(eventName(whole), ": it counted nothing");
  return scale * *reading[part].count / *reading[whole].count;
}

static Result<double> perThousandInstructions(const CounterReading &reading,
                                              CountedEvent event) {
  return ratio(reading, event, CountedEvent::Instructions, 1000);
}

/// Loads that reach a memory controller: those from any node's memory, or,
/// where these are not counted, those that the last cache does not have.
static Result<double> memoryLoads(const CounterReading &reading) {
  Result<double> loads =
      perThousandInstructions(reading, CountedEvent::NodeLoads);
  if (loads)
    return loads;
  Result<double> misses =
      perThousandInstructions(reading, CountedEvent::LastLevelCacheLoadMisses);
  if (misses)
    return misses;
  return loads;
}

std::vector<WorkloadFigure>
sandwich::workloadFigures(const CounterReading &reading) {
  using enum CountedEvent;
  return {
      {"IPC", "ipc", "instructions per cycle",
       ratio(reading, Instructions, Cycles)},
      {"L3LPKI", "l3lpki", "last-level cache loads per 1000 instructions",
       perThousandInstructions(reading, LastLevelCacheLoads)},
      {"LLCMiss", "llc_miss_ratio", "share of those loads that miss",
       ratio(reading, LastLevelCacheLoadMisses, LastLevelCacheLoads)},
      {"DTLBMiss", "dtlb_miss_ratio", "share of dTLB loads that miss",
       ratio(reading, DataTlbLoadMisses, DataTlbLoads)},
      {"RAR", "remote_access_ratio", "share of memory loads from other nodes",
       ratio(reading, NodeLoadMisses, NodeLoads)},
      {"MCLPKI", "mclpki", "memory loads per 1000 instructions",
       memoryLoads(reading)},
      {"MCIPKI", "mcipki", "imbalance of memory controllers",
       makeError("the counters of memory controllers belong to the whole "
                 "machine, not to a process; 'perf stat -a' reads them where "
                 "the processor has them ('perf list uncore')")},
      {"BUSPKI", "buspki", "bus cycles per 1000 instructions",
       perThousandInstructions(reading, BusCycles)},
  };
}
