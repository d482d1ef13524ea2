//===- Characterize.cpp - sandwich-run characterize -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Hosts.h"
#include "Measurement.h"
#include "Terminal.h"

#include "sandwich/Runtime/Measurement/Characterization.h"

#include <algorithm>
#include <cstdio>
#include <memory>

using namespace sandwich;

namespace {
/// One number of each test; without a value it is "-" or null.
struct Row {
  std::string name;
  std::vector<std::optional<double>> values;
  int decimals = 0;
};
} // namespace

static std::optional<double> valueOf(const Result<double> &result) {
  return result ? std::optional(*result) : std::nullopt;
}

/// One row, with the value that `get` has for each of `results`.
template <typename Get>
static Row makeRow(const std::string &name, int decimals,
                   const std::vector<BenchmarkResult> &results, Get get) {
  Row row{name, {}, decimals};
  for (const BenchmarkResult &result : results)
    row.values.push_back(get(result));
  return row;
}

static std::vector<Row> makeRows(const std::vector<BenchmarkResult> &results) {
  using Value = std::optional<double>;
  std::vector<Row> rows;
  rows.push_back(makeRow("tokens per second", 2, results,
                         [](const BenchmarkResult &result) -> Value {
                           return result.tokensPerSecond;
                         }));
  rows.push_back(makeRow("weights in % of plain reading's speed", 1, results,
                         [](const BenchmarkResult &result) -> Value {
                           if (!result.bandwidth)
                             return std::nullopt;
                           return 100 * result.bandwidth->weightsGBPerSecond /
                                  result.bandwidth->readGBPerSecond;
                         }));
  std::vector<WorkloadFigure> names = workloadFigures({});
  for (size_t i = 0; i < names.size(); ++i)
    rows.push_back(makeRow(std::string(names[i].name) + ", " + names[i].meaning,
                           4, results, [i](const BenchmarkResult &result) {
                             return valueOf(
                                 workloadFigures(*result.counters)[i].value);
                           }));
  for (size_t i = 0; i < countedEvents; ++i) {
    auto event = static_cast<CountedEvent>(i);
    rows.push_back(makeRow(eventName(event), 0, results,
                           [event](const BenchmarkResult &result) {
                             return valueOf((*result.counters)[event].count);
                           }));
  }
  auto add = [&](const char *name, int decimals, auto get) {
    rows.push_back(makeRow(name, decimals, results,
                           [get](const BenchmarkResult &result) -> Value {
                             return get(*result.counters);
                           }));
  };
  add("CPUs busy", 2, [](const CounterReading &reading) {
    return reading.seconds > 0 ? reading.cpuSeconds / reading.seconds : 0;
  });
  add("CPU seconds (task clock)", 4,
      [](const CounterReading &reading) { return reading.cpuSeconds; });
  add("page faults", 0, [](const CounterReading &reading) {
    return static_cast<double>(reading.pageFaults);
  });
  add("  of these from disk", 0, [](const CounterReading &reading) {
    return static_cast<double>(reading.majorPageFaults);
  });
  add("context switches, of those that waited", 0,
      [](const CounterReading &reading) {
        return static_cast<double>(reading.voluntarySwitches);
      });
  add("context switches, of those displaced", 0,
      [](const CounterReading &reading) {
        return static_cast<double>(reading.involuntarySwitches);
      });
  return rows;
}

/// Whether any hardware event has a number in any of the results.
static bool anyHardwareCount(const std::vector<BenchmarkResult> &results) {
  for (const BenchmarkResult &result : results)
    for (size_t i = 0; i < countedEvents; ++i)
      if (auto event = static_cast<CountedEvent>(i);
          isHardwareEvent(event) && (*result.counters)[event].count)
        return true;
  return false;
}

/// What has no number, by reason: "not available: cycles, bus-cycles: …".
static std::string
unavailableLines(const std::vector<BenchmarkResult> &results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> byReason;
  auto add = [&](const std::string &name, const std::string &reason) {
    auto entry = std::ranges::find(
        byReason, reason,
        &std::pair<std::string, std::vector<std::string>>::first);
    if (entry == byReason.end())
      entry = byReason.insert(entry, {reason, {}});
    if (std::ranges::find(entry->second, name) == entry->second.end())
      entry->second.push_back(name);
  };
  for (const BenchmarkResult &result : results) {
    for (size_t i = 0; i < countedEvents; ++i) {
      auto event = static_cast<CountedEvent>(i);
      if (const auto &count = (*result.counters)[event].count; !count)
        add(eventName(event), count.error().message);
    }
    // Other figures lack an event, whose reason was just given.
    for (const WorkloadFigure &figure : workloadFigures(*result.counters))
      if (figure.key == std::string_view("mcipki") && !figure.value)
        add(figure.name, figure.value.error().message);
  }
  std::string text;
  for (const auto &[reason, names] : byReason) {
    text += "not available: ";
    for (size_t i = 0; i < names.size(); ++i)
      text += (i > 0 ? ", " : "") + names[i];
    text += ": " + reason + "\n";
  }
  return text;
}

/// Which counts are extrapolated, as their counters took turns.
static std::string
extrapolationLines(const std::vector<BenchmarkResult> &results) {
  std::string text;
  for (const BenchmarkResult &result : results) {
    double least = 1;
    for (const CounterReading::Event &event : result.counters->events)
      if (event.count)
        least = std::min(least, event.runningShare);
    char line[160];
    std::snprintf(line, sizeof(line),
                  "%s: counters took turns; counts are extrapolated from at "
                  "least %.0f%% of the time\n",
                  result.test.c_str(), 100 * least);
    // Opening and reading counters one after the other costs some microseconds.
    if (least < 0.99)
      text += line;
  }
  return text;
}

static Status printTable(const std::vector<BenchmarkResult> &results) {
  if (results.empty())
    return {};
  constexpr int nameColumns = 52;
  constexpr int numberColumns = 17;
  char cell[80];
  std::snprintf(cell, sizeof(cell), "%-*s", nameColumns, "");
  std::string text = cell;
  for (const BenchmarkResult &result : results) {
    std::snprintf(cell, sizeof(cell), " %*s", numberColumns,
                  result.test.c_str());
    text += cell;
  }
  text += "\n";
  for (const Row &row : makeRows(results)) {
    // Only decode is compared with plain reading.
    if (std::ranges::none_of(row.values,
                             [](const auto &value) { return bool(value); }))
      continue;
    std::snprintf(cell, sizeof(cell), "%-*s", nameColumns, row.name.c_str());
    text += cell;
    for (std::optional<double> value : row.values) {
      std::snprintf(cell, sizeof(cell), " %*.*f", numberColumns, row.decimals,
                    value.value_or(0));
      text += value ? cell : std::string(numberColumns, ' ') + "-";
    }
    text += "\n";
  }
  if (!anyHardwareCount(results))
    text += "no hardware counter can be read here; what the system counts is "
            "above\n";
  text += extrapolationLines(results);
  text += unavailableLines(results);
  return writeStandardOutput(text);
}

/// Sets `values[name]` to the value or null, and then `reasons[name]` to why.
static void setOrExplain(Json &values, Json &reasons, const char *name,
                         const Result<double> &value) {
  values[name] = value ? Json(*value) : Json();
  if (!value)
    reasons[name] = value.error().message;
}

static Json toJson(const BenchmarkTest &test, const BenchmarkResult &result) {
  const CounterReading &reading = *result.counters;
  Json figures = Json::object();
  Json events = Json::object();
  Json shares = Json::object();
  Json unavailable = Json::object();
  for (const WorkloadFigure &figure : workloadFigures(reading))
    setOrExplain(figures, unavailable, figure.key, figure.value);
  for (size_t i = 0; i < countedEvents; ++i) {
    auto event = static_cast<CountedEvent>(i);
    setOrExplain(events, unavailable, eventName(event), reading[event].count);
    if (reading[event].count)
      shares[eventName(event)] = reading[event].runningShare;
  }
  Json json = {{"test", result.test},
               {"phase", test.generates ? "decode" : "prefill"},
               {"tokens_per_second", result.tokensPerSecond},
               {"stddev", result.standardDeviation},
               {"figures", figures},
               {"events", events},
               {"running_share", shares},
               {"unavailable", unavailable},
               {"seconds", reading.seconds},
               {"cpu_seconds", reading.cpuSeconds},
               {"page_faults", reading.pageFaults},
               {"major_page_faults", reading.majorPageFaults},
               {"voluntary_switches", reading.voluntarySwitches},
               {"involuntary_switches", reading.involuntarySwitches}};
  if (result.bandwidth) {
    json["weights_gb_per_second"] = result.bandwidth->weightsGBPerSecond;
    json["read_gb_per_second"] = result.bandwidth->readGBPerSecond;
  }
  return json;
}

static Status run(const tool::MeasurementArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            tool::loadForMeasurement(arguments));
  catchInterrupts();
  PerfEvents system;
  HardwareCounters counters(engine->team(PhaseKind::Prefill), system);
  BenchmarkOptions options = arguments.benchmark;
  options.counters = &counters;
  SANDWICH_ASSIGN_OR_RETURN(std::vector<BenchmarkResult> results,
                            runBenchmark(*engine, options, {}, [] {
                              return interrupted() || outputClosed();
                            }));
  Status complete = tool::measurementComplete(options, results);
  if (!arguments.json) {
    SANDWICH_RETURN_IF_ERROR(printTable(results));
    return complete;
  }
  Json json = tool::describeMeasurement(*engine, options, !complete);
  json["hardware_counters"] = anyHardwareCount(results);
  json["results"] = Json::array();
  std::vector<BenchmarkTest> tests = benchmarkTests(options);
  for (size_t i = 0; i < results.size(); ++i)
    json["results"].push_back(toJson(tests[i], results[i]));
  SANDWICH_RETURN_IF_ERROR(tool::writeJson(json));
  return complete;
}

void tool::addCharacterizeCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<MeasurementArguments>();
  arguments->benchmark.promptLengths = {128};
  arguments->benchmark.generatedTokens = {16};
  CLI::App *command = app.add_subcommand(
      "characterize",
      "Reads hardware counters during prefill and during decode");
  command->footer(R"(Example:
  sandwich-run characterize llama.sandwich -p 512 -n 32 -r 5

The tests are those of 'bench': ppN is the prefill of N tokens, tgN decode of N
tokens one by one. Counts are sums over all threads and repetitions, outside of
the kernel. A phase that computes has a high IPC; one that waits for memory has
a low IPC, many memory loads (MCLPKI) and bus cycles (BUSPKI) for each 1000
instructions, and the weights near 100% of the speed that plain reading reaches.
RAR is the share of memory loads that went to another NUMA node.

Which events exist is up to the processor, the hypervisor and the kernel. Those
that do not are listed with the reason and what would help; in JSON they are
null, and 'unavailable' has the reason. Most machines need
  sysctl kernel.perf_event_paranoid=2
and a virtual machine needs a virtual PMU. Context switches, page faults and CPU
time are always there.)");
  addMeasurementOptions(*command, *arguments);
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of a table");
  command->callback([arguments, &action] {
    finishMeasurementOptions(*arguments);
    action = [arguments] {
      return runOnHosts(arguments->engine, arguments->artifact,
                        [&] { return run(*arguments); });
    };
  });
}
