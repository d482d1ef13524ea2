//===- Sampler.cpp - From logits to a token -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/Sampler.h"

#include "RowStep.h"

#include <utility>

using namespace sandwich;

Result<SampledToken> Sampler::sample(std::span<const float> logits,
                                     std::span<const uint64_t> allowed,
                                     const DrawToken *draw) {
  RowStep step({this, logits, allowed, draw});
  step.scan(0, step.blocks());
  return step.finish();
}

/// With so many rows for each thread, whole rows divide the work well enough.
static constexpr size_t rowsForEachThread = 4;

/// Scans `rows`, each divided among `threads` threads.
static std::vector<RowStep> scanInParts(std::span<const SamplingRow> rows,
                                        size_t threads,
                                        const ParallelFor &parallelFor) {
  std::vector<RowStep> steps;
  steps.reserve(rows.size());
  for (const SamplingRow &row : rows)
    steps.emplace_back(row);
  parallelFor(rows.size() * threads, [&](size_t index) {
    RowStep &step = steps[index / threads];
    const size_t part = index % threads;
    step.scan(step.blocks() * part / threads,
              step.blocks() * (part + 1) / threads);
  });
  return steps;
}

std::vector<Result<SampledToken>>
sandwich::sampleBatch(std::span<const SamplingRow> rows, size_t threads,
                      const ParallelFor &parallelFor) {
  std::vector<Result<SampledToken>> results(rows.size(), SampledToken());
  if (rows.empty())
    return results;
  if (threads == 1 || rows.size() >= threads * rowsForEachThread) {
    // A thread that scans a whole row still has it in its cache afterwards.
    parallelFor(rows.size(), [&](size_t index) {
      const SamplingRow &row = rows[index];
      results[index] = row.sampler->sample(row.logits, row.allowed, row.draw);
    });
    return results;
  }
  std::vector<RowStep> steps = scanInParts(rows, threads, parallelFor);
  parallelFor(rows.size(),
              [&](size_t index) { results[index] = steps[index].finish(); });
  return results;
}
