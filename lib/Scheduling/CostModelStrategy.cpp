//===- CostModelStrategy.cpp - The cost model's choice --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyFamilies.h"

using namespace sandwich;

namespace {

class CostModelStrategy : public SearchStrategy {
public:
  Result<Choice> choose(const Payload &payload,
                        TuningContext &context) override {
    SANDWICH_ASSIGN_OR_RETURN(
        Choice choice, chooseByModel(payload, context.menu, context.model));
    context.log.push_back({SearchPhase::Model, payload.rows, choice.schedule,
                           choice.seconds, true});
    return choice;
  }
};

} // namespace

std::unique_ptr<SearchStrategy> sandwich::makeCostModelStrategy() {
  return std::make_unique<CostModelStrategy>();
}
