//===- ScheduleMatmuls.cpp - Give every matmul a schedule table -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Scheduling/CostModel.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ScheduleDatabase.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <vector>

namespace sandwich::gemm {
#define GEN_PASS_DEF_SCHEDULEMATMULS
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"
} // namespace sandwich::gemm

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

/// Makes the operation that defines `input` round its result to bf16. Only
/// operations that can do so, and whose result only `user` reads, qualify.
static LogicalResult narrowProducer(MatmulOp user, Value input) {
  auto producer = input.getDefiningOp<lm::StepOpInterface>();
  if (!input.hasOneUse() || !producer || !producer.canNarrowResult())
    return user.emitOpError(
        "reads an input that cannot be rounded to bf16 where it is made");
  auto type = cast<RankedTensorType>(input.getType());
  input.setType(type.clone(BFloat16Type::get(user.getContext())));
  return success();
}

namespace {
struct ScheduleMatmuls : gemm::impl::ScheduleMatmulsBase<ScheduleMatmuls> {
  using ScheduleMatmulsBase::ScheduleMatmulsBase;

  void runOnOperation() override {
    Result<Target> model = getTarget(target.getValue());
    if (!model) {
      getOperation().emitError(model.error().message);
      return signalPassFailure();
    }
    if (threads < 1 || threads > maxThreads) {
      getOperation().emitError("threads must be between 1 and ") << maxThreads;
      return signalPassFailure();
    }
    Result<ScheduleDatabase> tuned = ScheduleDatabase();
    if (!database.empty())
      tuned = ScheduleDatabase::load(database);
    if (!tuned) {
      getOperation().emitError(tuned.error().message);
      return signalPassFailure();
    }
    untuned.clear();
    SymbolTableCollection symbols;
    const bool deterministic = lm::isDeterministic(getOperation());
    llvm::DenseMap<StringAttr, MatrixISA> instructions;
    WalkResult result = getOperation().walk([&](MatmulOp matmul) {
      const int64_t team = lm::getThreads(
          matmul->getParentOfType<FunctionOpInterface>(), threads);
      if (!matmul.getSchedules()) {
        Result<ScheduleTable> table = ScheduleTable();
        if (!database.empty())
          table = findTuned(matmul, team, *tuned, *model, symbols);
        if (table && table->empty())
          table = chooseOnce(getShape(matmul, symbols), team, *model);
        if (!table) {
          matmul.emitOpError(table.error().message);
          return WalkResult::interrupt();
        }
        matmul.setSchedulesAttr(getTableAttr(&getContext(), *table));
      }
      for (ScheduleAttr schedule : matmul.getSchedules()->getSchedules()) {
        auto [tM, tN, tK] = schedule.getSchedule().threads;
        if (tM * tN * tK > team) {
          matmul.emitOpError("has a schedule for ")
              << tM * tN * tK << " threads, the team has " << team;
          return WalkResult::interrupt();
        }
        // Both phases read the weight, and instructions differ in how they
        // round.
        MatrixISA isa = schedule.getSchedule().microKernel.isa;
        auto known =
            instructions.try_emplace(matmul.getWeightAttr().getAttr(), isa);
        if (deterministic && known.first->second != isa) {
          matmul.emitOpError("must be deterministic, but multiplies ")
              << matmul.getWeightAttr() << " by different instructions, "
              << name(known.first->second) << " and " << name(isa);
          return WalkResult::interrupt();
        }
      }
      const Schedule &schedule =
          matmul.getSchedules()->getSchedules().front().getSchedule();
      bool readsBF16 = multipliesBF16(schedule.microKernel.isa);
      auto inputType = cast<ShapedType>(matmul.getInput().getType());
      if (readsBF16 && inputType.getElementType().isF32() &&
          failed(narrowProducer(matmul, matmul.getInput())))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  /// The untuned table for `shape`. Choosing takes milliseconds, and models
  /// repeat their shapes.
  Result<ScheduleTable> chooseOnce(const MatmulShape &shape, int64_t team,
                                   const Target &model) {
    for (const auto &[chosenShape, chosenTeam, table] : untuned)
      if (chosenShape == shape && chosenTeam == team)
        return table;
    SANDWICH_ASSIGN_OR_RETURN(ScheduleTable table,
                              chooseUntuned(shape, model, team));
    constexpr size_t mostKept = 64;
    if (untuned.size() < mostKept)
      untuned.push_back({shape, team, table});
    return table;
  }

  /// The tuned table of `matmul`, whose weight gets its packing; none if there
  /// is no such table.
  Result<ScheduleTable> findTuned(MatmulOp matmul, int64_t team,
                                  const ScheduleDatabase &tuned,
                                  const Target &model,
                                  SymbolTableCollection &symbols) {
    MatmulShape shape = getShape(matmul, symbols);
    std::vector<MicroKernel> menu = microKernelMenu(shape, model);
    if (menu.empty())
      return ScheduleTable();
    auto found = tuned.findTuned({shape, team}, model, menu.front().isa);
    if (!found)
      return ScheduleTable();
    lm::lookupWeight(symbols, matmul, matmul.getWeightAttr())
        .setPackingAttr(PackingAttr::get(&getContext(), found->first.packing));
    ++numTuned;
    return servedTable(found->first, found->second, model);
  }

  struct ChosenTable {
    MatmulShape shape;
    int64_t team;
    ScheduleTable table;
  };
  std::vector<ChosenTable> untuned;
};
} // namespace
