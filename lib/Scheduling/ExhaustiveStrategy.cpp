//===- ExhaustiveStrategy.cpp - Every schedule of a coarse space ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyFamilies.h"
#include "sandwich/Support/CheckedMath.h"

#include <optional>
#include <random>

using namespace sandwich;

namespace {

/// Sizes that divide `part` into 1, 2, 3, 4, 6, 8, 12, ... slices, each once.
std::vector<int64_t> sliceSizes(int64_t part, int64_t tile, int64_t unit) {
  std::vector<int64_t> sizes;
  for (int64_t count = 1; count <= divideUp(part, tile);
       count += count < 4        ? 1
                : count % 3 == 0 ? count / 3
                                 : count / 2) {
    int64_t size = roundUp(divideUp(part, count), unit);
    if (sizes.empty() || size != sizes.back())
      sizes.push_back(size);
  }
  return sizes;
}

class ExhaustiveStrategy : public SearchStrategy {
public:
  Result<Choice> choose(const Payload &payload,
                        TuningContext &context) override;
};

Result<Choice> ExhaustiveStrategy::choose(const Payload &payload,
                                          TuningContext &context) {
  std::vector<Schedule> space;
  // Reservoir sampling (Vitter's algorithm R) where the space is larger.
  const auto limit = static_cast<size_t>(context.options.exhaustiveLimit);
  std::mt19937_64 random(context.options.exhaustiveSeed.value_or(0));
  size_t seen = 0;
  auto add = [&](const Schedule &schedule) {
    ++seen;
    if (space.size() < limit)
      space.push_back(schedule);
    else if (size_t at = random() % seen; at < limit)
      space[at] = schedule;
  };
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, context.menu)) {
    const MicroKernel &kernel = members.back();
    Packing packing = packingFor(payload.shape, kernel.isa);
    std::array<int64_t, 3> tile = sliceTile(kernel, payload);
    for (const std::array<int64_t, 3> &grid : threadGrids(payload, packing)) {
      std::array<int64_t, 3> part = largestPart(payload, packing, grid);
      for (int64_t bM : sliceSizes(part[0], tile[0], 1))
        for (int64_t bN : sliceSizes(part[1], tile[1], tile[1]))
          for (int64_t bK : sliceSizes(part[2], tile[2], tile[2]))
            for (LoopOrder order :
                 {LoopOrder::RowsOuter, LoopOrder::ColumnsOuter}) {
              if (order == LoopOrder::ColumnsOuter &&
                  (bM >= part[0] || bN >= part[1]))
                continue;
              Schedule schedule{
                  .microKernel = kernel,
                  .slice = clipSlice(payload, kernel, {bM, bN, bK}, grid),
                  .threads = grid,
                  .order = order};
              schedule = completeByRule(schedule, payload.shape, payload.rows);
              add(schedule);
              if (schedule.prefetchLines > 0) {
                schedule.prefetchLines = 0;
                add(schedule);
              }
              if (seen > limit && !context.options.exhaustiveSeed)
                return makeError("exhaustive search for ", payload.rows,
                                 " rows of ", payload.shape.n, " x ",
                                 payload.shape.k, " would take more than ",
                                 context.options.exhaustiveLimit,
                                 " measurements; choose another strategy");
            }
    }
  }
  std::optional<Choice> best;
  for (const Schedule &schedule : space) {
    SANDWICH_ASSIGN_OR_RETURN(double seconds,
                              context.session.seconds(payload, schedule));
    bool better = !best || seconds < best->seconds;
    if (better)
      best = Choice{payload.rows, schedule, seconds};
    context.log.push_back(
        {SearchPhase::Finetune, payload.rows, schedule, seconds, better});
  }
  if (!best)
    return noMicroKernel(payload);
  return *best;
}

} // namespace

std::unique_ptr<SearchStrategy> sandwich::makeExhaustiveStrategy() {
  return std::make_unique<ExhaustiveStrategy>();
}
