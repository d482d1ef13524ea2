//===- ScheduleMatmuls.cpp - Give every matmul a schedule table -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Scheduling/AttentionSchedule.h"
#include "sandwich/Scheduling/CostModel.h"
#include "sandwich/Scheduling/ScheduleDatabase.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>
#include <vector>

namespace sandwich::gemm {
#define GEN_PASS_DEF_SCHEDULEMATMULS
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"
} // namespace sandwich::gemm

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

/// The schedules of the matmul whose input `use` is; none if it is no input.
static ArrayRef<ScheduleAttr> getSchedulesOfReader(OpOperand &use) {
  auto matmul = dyn_cast<MatmulOp>(use.getOwner());
  if (!matmul || &use != &matmul.getInputMutable())
    return {};
  return matmul.getSchedules()->getSchedules();
}

/// Whether `use` is what a matmul multiplies in bf16.
static bool isMultipliedInBF16(OpOperand &use) {
  return llvm::any_of(getSchedulesOfReader(use), [](ScheduleAttr schedule) {
    return multipliesBF16(schedule.getSchedule().microKernel.isa);
  });
}

/// Whether `use` is what a matmul rounds to integers.
static bool isRoundedToIntegers(OpOperand &use) {
  ArrayRef<ScheduleAttr> schedules = getSchedulesOfReader(use);
  return !schedules.empty() &&
         llvm::all_of(schedules, [](ScheduleAttr schedule) {
           return multipliesIntegers(schedule.getSchedule().microKernel.isa);
         });
}

/// Lets attention to a cache that is rounded itself give bf16 where all that
/// reads it rounds it further, to int8: it then uses instructions of bf16.
static void narrowAttention(lm::AttentionOp attention) {
  if (!attention.getResult() || attention.getResult().use_empty() ||
      lm::getKVCacheType(attention.getKvCache().getType())
          .getElementType()
          .isF32() ||
      !llvm::all_of(attention.getResult().getUses(), isRoundedToIntegers))
    return;
  auto type = cast<RankedTensorType>(attention.getResult().getType());
  attention.getResult().setType(
      type.clone(BFloat16Type::get(attention.getContext())));
}

/// Rows that `producer` copies, which now makes bf16 of them, can be of bf16
/// before: their bits are the same, and attention to all tokens may then use
/// instructions of bf16, as it does where a matmul reads it.
static void narrowPooled(lm::StepOpInterface producer) {
  auto pool = dyn_cast<lm::PoolOp>(*producer);
  if (!pool || pool.getKind() == lm::PoolKind::Mean)
    return;
  Value input = pool.getInput();
  auto source = input.getDefiningOp<lm::StepOpInterface>();
  if (source && source.canNarrowResult() && input.hasOneUse())
    input.setType(pool.getResult().getType());
}

/// Makes bf16 of `input`, which is f32, for the matmuls that multiply it so:
/// where it is made, if that is possible and they alone read it, in a copy
/// otherwise.
static void narrow(Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  auto narrowType = type.clone(BFloat16Type::get(input.getContext()));
  auto producer = input.getDefiningOp<lm::StepOpInterface>();
  if (producer && producer.canNarrowResult() &&
      llvm::all_of(input.getUses(), isMultipliedInBF16)) {
    input.setType(narrowType);
    return narrowPooled(producer);
  }
  OpBuilder builder(input.getContext());
  builder.setInsertionPointAfterValue(input);
  auto rounded = lm::RoundOp::create(builder, input.getLoc(), narrowType, input,
                                     /*destination=*/Value());
  input.replaceUsesWithIf(rounded.getResult(), isMultipliedInBF16);
}

/// Whether both give the same bits. Sums of a group are exact, and usmmla's are
/// scaled as sdot's are.
static bool roundAlike(MatrixISA first, MatrixISA second) {
  const auto isOfNeon = [](MatrixISA isa) {
    return isa == MatrixISA::ARM_NEON_DOTPROD ||
           isa == MatrixISA::ARM_NEON_I8MM;
  };
  return first == second || (isOfNeon(first) && isOfNeon(second));
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
    if (activations != "float" && activations != "int8") {
      getOperation().emitError("activations must be float or int8, not '")
          << activations << "'";
      return signalPassFailure();
    }
    Result<ScheduleDatabase> tuned = ScheduleDatabase();
    if (!database.empty())
      tuned = ScheduleDatabase::load(database);
    if (!tuned) {
      getOperation().emitError(tuned.error().message);
      return signalPassFailure();
    }
    machine = std::nullopt;
    if (!machineParameters.empty()) {
      Result<MachineDescription> described = readNodeDescription(
          machineParameters, static_cast<uint64_t>(threads.getValue()), *model);
      if (!described) {
        getOperation().emitError(described.error().message);
        return signalPassFailure();
      }
      machine = std::move(*described);
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
          table =
              chooseOnce(getShape(matmul, symbols, activations), team, *model);
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
        if (deterministic && !roundAlike(known.first->second, isa)) {
          matmul.emitOpError("must be deterministic, but multiplies ")
              << matmul.getWeightAttr() << " by different instructions, "
              << name(known.first->second) << " and " << name(isa);
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    // Once it is known of all that read a value how they do.
    result = getOperation().walk([](MatmulOp matmul) {
      auto type = cast<ShapedType>(matmul.getInput().getType());
      if (!type.getElementType().isF32() ||
          !isMultipliedInBF16(matmul.getInputMutable()))
        return WalkResult::advance();
      if (!isa<RankedTensorType>(type)) {
        matmul.emitOpError("multiplies bf16, but reads a buffer of f32");
        return WalkResult::interrupt();
      }
      narrow(matmul.getInput());
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (attentionInstructions(*model) && !deterministic)
      getOperation().walk(narrowAttention);
  }

  /// The untuned table for `shape`. Choosing takes milliseconds, and models
  /// repeat their shapes.
  Result<ScheduleTable> chooseOnce(const MatmulShape &shape, int64_t team,
                                   const Target &model) {
    for (const auto &[chosenShape, chosenTeam, table] : untuned)
      if (chosenShape == shape && chosenTeam == team)
        return table;
    SANDWICH_ASSIGN_OR_RETURN(
        ScheduleTable table,
        chooseUntuned(shape, model, team, {.machine = machine}));
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
    const MatmulShape shape = getShape(matmul, symbols, activations);
    const std::optional<MatrixISA> isa = instructionsFor(shape, model);
    if (!isa)
      return ScheduleTable();
    auto found = tuned.findTuned({shape, team}, model, *isa);
    if (!found)
      return ScheduleTable();
    lm::lookupWeight(symbols, matmul, matmul.getWeightAttr())
        .setPackingAttr(PackingAttr::get(&getContext(), found->first.packing));
    ++numTuned;
    return servedTable(found->first, found->second, model, machine);
  }

  struct ChosenTable {
    MatmulShape shape;
    int64_t team;
    ScheduleTable table;
  };
  std::vector<ChosenTable> untuned;
  /// Of `machineParameters`, if any.
  std::optional<MachineDescription> machine;
};
} // namespace
