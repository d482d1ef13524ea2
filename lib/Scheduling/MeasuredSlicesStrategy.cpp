//===- MeasuredSlicesStrategy.cpp - The searches of DietCode and MikPoly --===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyFamilies.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <optional>

using namespace sandwich;

namespace {

/// What both cost-model strategies measure once for a group: slices of each
/// micro-kernel, and the time of each.
class MeasuredSlicesStrategy : public SearchStrategy {
public:
  /// Whether thread grids and remainders are put together for each payload;
  /// else threads split columns and slices are padded.
  explicit MeasuredSlicesStrategy(bool onTheFly) : onTheFly(onTheFly) {}
  Result<Choice> choose(const Payload &payload,
                        TuningContext &context) override;

private:
  Status measure(const Payload &payload, TuningContext &context);
  /// The time of a thread that repeats a slice over its part.
  double predict(const std::array<int64_t, 3> &part,
                 const std::array<int64_t, 3> &slice, double seconds) const;

  struct MeasuredSlice {
    Schedule schedule;
    double seconds;
  };
  bool onTheFly;
  bool measured = false;
  std::vector<MeasuredSlice> slices;
};

Status MeasuredSlicesStrategy::measure(const Payload &payload,
                                       TuningContext &context) {
  for (const MicroKernel &kernel : context.menu) {
    // As large as payloads get; a slice for fewer rows is a share of this.
    Payload largest = payload;
    largest.rows = 1 << 20;
    if (microKernelClasses(largest, {kernel}).empty())
      continue;
    std::array<int64_t, 3> tile = sliceTile(kernel, largest);
    for (int64_t strips : {int64_t(1), mostTimedStrips})
      for (int64_t k : {512, 2048}) {
        Schedule schedule{
            .microKernel = kernel,
            .slice = {kernel.rows * strips, tile[1],
                      std::min(roundUp(k, tile[2]), payload.shape.k)}};
        schedule = completeByRule(schedule, payload.shape, schedule.slice[0]);
        SANDWICH_ASSIGN_OR_RETURN(double seconds, context.session.sliceSeconds(
                                                      payload.shape, schedule));
        context.log.push_back(
            {SearchPhase::FastStart, payload.rows, schedule, seconds, false});
        slices.push_back({schedule, seconds});
      }
  }
  measured = true;
  return {};
}

double MeasuredSlicesStrategy::predict(const std::array<int64_t, 3> &part,
                                       const std::array<int64_t, 3> &slice,
                                       double seconds) const {
  double count = 1;
  for (int d = 0; d < 3; ++d)
    count *= onTheFly ? std::max(1.0, static_cast<double>(part[d]) / slice[d])
                      : static_cast<double>(divideUp(part[d], slice[d]));
  return count * seconds;
}

Result<Choice> MeasuredSlicesStrategy::choose(const Payload &payload,
                                              TuningContext &context) {
  if (!measured)
    SANDWICH_RETURN_IF_ERROR(measure(payload, context));
  std::optional<Choice> best;
  for (const MeasuredSlice &entry : slices) {
    const MicroKernel &kernel = entry.schedule.microKernel;
    Packing packing = packingFor(payload.shape, kernel.isa);
    std::vector<std::array<int64_t, 3>> grids = {
        mostEvenGrid(payload, packing)};
    if (onTheFly)
      grids = threadGrids(payload, packing);
    for (const std::array<int64_t, 3> &grid : grids) {
      std::array<int64_t, 3> part = largestPart(payload, packing, grid);
      double seconds = predict(part, entry.schedule.slice, entry.seconds);
      // Partial sums of split-k are written and read again.
      if (grid[2] > 1)
        seconds += 2 * 4.0 * part[0] * part[1] / 100e9;
      if (best && best->seconds <= seconds)
        continue;
      Schedule schedule = entry.schedule;
      schedule.threads = grid;
      schedule.slice = clipSlice(payload, kernel, schedule.slice, grid);
      schedule = completeByRule(schedule, payload.shape, payload.rows);
      best = Choice{payload.rows, schedule, seconds, false};
    }
  }
  if (!best)
    return noMicroKernel(payload);
  context.log.push_back(
      {SearchPhase::Model, payload.rows, best->schedule, best->seconds, true});
  return *best;
}

} // namespace

std::unique_ptr<SearchStrategy>
sandwich::makeMeasuredSlicesStrategy(bool onTheFly) {
  return std::make_unique<MeasuredSlicesStrategy>(onTheFly);
}
