//===- ScheduleAttention.cpp - How attention runs -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Scheduling/ScheduleDatabase.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace sandwich::lm {
#define GEN_PASS_DEF_SCHEDULEATTENTION
#include "sandwich/Dialect/LM/Transforms/Passes.h.inc"
} // namespace sandwich::lm

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

namespace {
struct ScheduleAttention : lm::impl::ScheduleAttentionBase<ScheduleAttention> {
  using ScheduleAttentionBase::ScheduleAttentionBase;

  void runOnOperation() override {
    Result<Target> model = getTarget(target.getValue());
    if (!model) {
      getOperation().emitError(model.error().message);
      return signalPassFailure();
    }
    if (threads < 1 || threads > SANDWICH_MAX_THREADS) {
      getOperation().emitError("threads must be between 1 and ")
          << SANDWICH_MAX_THREADS;
      return signalPassFailure();
    }
    Result<ScheduleDatabase> tuned = ScheduleDatabase();
    if (!database.empty())
      tuned = ScheduleDatabase::load(database);
    if (!tuned) {
      getOperation().emitError(tuned.error().message);
      return signalPassFailure();
    }
    const bool deterministic = isDeterministic(getOperation());
    std::optional<int64_t> chunk;
    WalkResult result = getOperation().walk([&](AttentionOp attention) {
      // In buffer form, there may be no memory for partial sums.
      if (!attention.getSchedules() && !attention.getDestination()) {
        const int64_t team = getThreads(
            attention->getParentOfType<FunctionOpInterface>(), threads);
        const AttentionShape shape = attention.getShape();
        const AttentionTable *found =
            deterministic ? nullptr
                          : tuned->find(AttentionKey::of(shape, *model, team));
        attention.setSchedulesAttr(AttentionTableAttr::get(
            &getContext(),
            found ? *found
                  : chooseUntuned(shape, *model, team, deterministic)));
      }
      if (!deterministic || !attention.getSchedules())
        return WalkResult::advance();
      // Either phase may compute a token.
      const AttentionTable &table = attention.getSchedules()->getTable();
      if (!chunk)
        chunk = table.front().schedule.prefill.chunk;
      Status status = verifyDeterministic(table, *chunk, *model);
      if (status)
        return WalkResult::advance();
      attention.emitOpError("must be deterministic, but ")
          << status.error().message;
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
