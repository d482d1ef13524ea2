//===- StepProfiler.cpp - Where the time of steps goes --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/StepProfiler.h"

#include <algorithm>

using namespace sandwich;

template <typename Duration> static double toSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double PhaseProfile::otherSeconds() const {
  double other = seconds;
  for (const OperationProfile &operation : operations)
    other -= operation.seconds;
  return other;
}

StepProfiler::StepProfiler(const proto::Phase &phase)
    : phase(phase), threads(phase.threads()) {
  for (ThreadEntries &thread : threads)
    thread.operations.resize(static_cast<size_t>(phase.operations_size()));
}

void StepProfiler::begin(SandwichStep &step) {
  step.profile = this;
  step.mark = [](void *profile, int32_t thread, int32_t operation) {
    static_cast<StepProfiler *>(profile)->mark(thread, operation);
  };
  ++steps;
  tokens += static_cast<uint64_t>(step.num_tokens);
  logitRows += static_cast<uint64_t>(step.num_logit_rows);
  for (int64_t i = 0; i < step.num_segments; ++i) {
    const SandwichSegment &segment = step.segments[i];
    const auto before = static_cast<uint64_t>(segment.first_position);
    const auto count = static_cast<uint64_t>(segment.num_tokens);
    // The tokens of a segment share what they read.
    positions += before + count;
    attended +=
        count * before +
        (phase.bidirectional() ? count * count : count * (count + 1) / 2);
  }
  start = Clock::now();
}

void StepProfiler::mark(int32_t thread, int32_t operation) {
  ThreadEntries &entries = threads[static_cast<size_t>(thread)];
  Entry &entry = entries.operations[static_cast<size_t>(operation)];
  Clock::time_point now = Clock::now();
  entry.time += now - entries.last;
  ++entry.calls;
  entries.last = now;
}

void StepProfiler::end() { time += Clock::now() - start; }

PhaseProfile StepProfiler::profile() const {
  PhaseProfile result;
  result.phase = phase.name();
  result.steps = steps;
  result.seconds = toSeconds(time);
  for (int i = 0; i < phase.operations_size(); ++i) {
    const proto::Operation &operation = phase.operations(i);
    OperationProfile entry;
    entry.name = operation.name();
    auto index = static_cast<size_t>(i);
    entry.calls = threads.front().operations[index].calls;
    for (const ThreadEntries &thread : threads)
      entry.seconds += toSeconds(thread.operations[index].time) /
                       static_cast<double>(threads.size());
    auto product = [](uint64_t cost, uint64_t count) {
      return static_cast<double>(cost) * static_cast<double>(count);
    };
    // Every step calls an operation equally often.
    double callsInStep =
        steps ? static_cast<double>(entry.calls) / static_cast<double>(steps)
              : 0;
    entry.bytes =
        product(operation.bytes(), entry.calls) +
        callsInStep * product(operation.bytes_per_position(), positions);
    entry.flops =
        callsInStep * (product(operation.flops_per_token(), tokens) +
                       product(operation.flops_per_logit_row(), logitRows) +
                       product(operation.flops_per_attended(), attended));
    // What is in a loop and behind it has one name.
    auto known = std::ranges::find(result.operations, entry.name,
                                   &OperationProfile::name);
    if (known == result.operations.end()) {
      result.operations.push_back(std::move(entry));
      continue;
    }
    known->calls += entry.calls;
    known->seconds += entry.seconds;
    known->bytes += entry.bytes;
    known->flops += entry.flops;
  }
  return result;
}
