//===- ScaleUpAndOutStrategy.cpp - The search of Roller -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyFamilies.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace sandwich;

namespace {

class ScaleUpAndOutStrategy : public SearchStrategy {
public:
  Result<Choice> choose(const Payload &payload,
                        TuningContext &context) override;
};

/// Bytes of a slice's operands and sums.
double footprint(const std::array<int64_t, 3> &slice, const MatmulShape &shape,
                 MatrixISA isa) {
  auto [m, n, k] = slice;
  const double input = multipliesIntegers(isa) ? 1
                       : multipliesBF16(isa)   ? 2
                                               : 4;
  const double weight = bitsPerWeight(shape.storage, shape.k) / 8;
  return static_cast<double>(m * k) * input +
         static_cast<double>(n * k) * weight + static_cast<double>(m * n) * 4;
}

Result<Choice> ScaleUpAndOutStrategy::choose(const Payload &payload,
                                             TuningContext &context) {
  std::optional<Choice> best;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, context.menu)) {
    const MicroKernel &kernel = members.back();
    Packing packing = packingFor(payload.shape, kernel.isa);
    std::array<int64_t, 3> tile = sliceTile(kernel, payload);
    std::array<int64_t, 3> all = {payload.rows,
                                  roundUp(payload.shape.n, tile[1]),
                                  roundUp(payload.shape.k, packing.kStep)};
    Schedule schedule{.microKernel = kernel, .slice = tile};
    auto withSlice = [&](const std::array<int64_t, 3> &slice) {
      Schedule result = schedule;
      result.slice = slice;
      return completeByRule(result, payload.shape, slice[0]);
    };
    auto profile = [&](std::array<int64_t, 3> slice) -> Result<double> {
      schedule = withSlice(slice);
      SANDWICH_ASSIGN_OR_RETURN(double seconds, context.session.sliceSeconds(
                                                    payload.shape, schedule));
      context.log.push_back(
          {SearchPhase::FastStart, payload.rows, schedule, seconds, false});
      return 2.0 * slice[0] * slice[1] * slice[2] / seconds;
    };
    std::array<int64_t, 3> slice = tile;
    SANDWICH_ASSIGN_OR_RETURN(double speed, profile(slice));
    // A tile more gains little where a slice is large already.
    const double gain = context.options.minimumGain / 10;
    const double none = std::numeric_limits<double>::infinity();
    for (double cacheBytes :
         {context.model.l1Bytes(), context.model.l2Bytes(), none}) {
      const std::array<int64_t, 3> step = slice;
      while (true) {
        std::array<int64_t, 3> fastest = slice;
        double fastestSpeed = speed * (1 + gain);
        for (int d = 0; d < 3; ++d) {
          std::array<int64_t, 3> grown = slice;
          grown[d] = std::min(grown[d] + step[d], all[d]);
          if (grown[d] == slice[d] ||
              !sliceFitsMemory(payload.shape, withSlice(grown)) ||
              footprint(grown, payload.shape, kernel.isa) > cacheBytes)
            continue;
          SANDWICH_ASSIGN_OR_RETURN(double grownSpeed, profile(grown));
          if (grownSpeed > fastestSpeed) {
            fastestSpeed = grownSpeed;
            fastest = grown;
          }
        }
        if (fastest == slice)
          break;
        slice = fastest;
        speed = fastestSpeed;
      }
    }
    schedule.threads = mostEvenGrid(payload, packing);
    schedule.slice = clipSlice(payload, kernel, slice, schedule.threads);
    schedule = completeByRule(schedule, payload.shape, payload.rows);
    SANDWICH_ASSIGN_OR_RETURN(double seconds,
                              context.session.seconds(payload, schedule));
    bool better = !best || seconds < best->seconds;
    context.log.push_back(
        {SearchPhase::Polymerize, payload.rows, schedule, seconds, better});
    if (better)
      best = Choice{payload.rows, schedule, seconds};
  }
  if (!best)
    return noMicroKernel(payload);
  return *best;
}

} // namespace

std::unique_ptr<SearchStrategy> sandwich::makeScaleUpAndOutStrategy() {
  return std::make_unique<ScaleUpAndOutStrategy>();
}
