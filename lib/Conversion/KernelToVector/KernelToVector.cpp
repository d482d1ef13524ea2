//===- KernelToVector.cpp - Hand-written kernels as loops over vectors ----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raiser.h"

#include "sandwich/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace sandwich {
#define GEN_PASS_DEF_KERNELTOVECTOR
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;
using namespace sandwich::raising;

/// Makes `loop` one that counts, if it is one. Upstream's rewrite takes the
/// index behind the loop for that of the last turn, and loses the names of
/// variables.
static void countLoop(IRRewriter &rewriter, scf::WhileOp loop) {
  auto condition = cast<scf::ConditionOp>(loop.getBefore().front().back());
  auto compare = condition.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || condition.getArgs() != loop.getBeforeArguments() ||
      (compare.getPredicate() != arith::CmpIPredicate::slt &&
       compare.getPredicate() != arith::CmpIPredicate::ult))
    return;
  auto index = dyn_cast<BlockArgument>(compare.getLhs());
  if (!index || index.getOwner() != loop.getBeforeBody())
    return;
  if (!llvm::all_of(loop.getBeforeBody()->without_terminator(),
                    [](Operation &op) { return isMemoryEffectFree(&op); }))
    return;
  const unsigned number = index.getArgNumber();
  auto next =
      loop.getYieldOp().getOperand(number).getDefiningOp<arith::AddIOp>();
  IntegerAttr step;
  if (!next || next.getLhs() != loop.getAfterArguments()[number] ||
      !matchPattern(next.getRhs(), m_Constant(&step)) ||
      !step.getValue().isStrictlyPositive())
    return;
  // What is known of both may stand in the loop, and nothing else of it.
  for (Value bound : {compare.getRhs(), next.getRhs()}) {
    if (!loop->isAncestor(bound.getParentBlock()->getParentOp()))
      continue;
    if (!isa_and_nonnull<arith::ConstantOp>(bound.getDefiningOp()))
      return;
    bound.getDefiningOp()->moveBefore(loop);
  }
  OpResult last = cast<OpResult>(loop.getResult(number));
  const bool isUsed = !last.use_empty();
  Value first = loop.getInits()[number], end = compare.getRhs();
  // As many whole steps as lead from the first one to the end or beyond.
  const auto computeLast = [&](Location location) -> Value {
    Type type = first.getType();
    Value by = arith::ConstantOp::create(rewriter, location, step);
    Value one = arith::ConstantOp::create(rewriter, location,
                                          rewriter.getIntegerAttr(type, 1));
    Value runs = arith::CmpIOp::create(rewriter, location,
                                       compare.getPredicate(), first, end);
    Value span = arith::SubIOp::create(rewriter, location, end, first);
    Value turns = arith::SubIOp::create(rewriter, location, span, one);
    turns = arith::DivUIOp::create(rewriter, location, turns, by);
    turns = arith::AddIOp::create(rewriter, location, turns, one);
    Value all = arith::MulIOp::create(rewriter, location, turns, by);
    all = arith::AddIOp::create(rewriter, location, first, all);
    return arith::SelectOp::create(rewriter, location, runs, all, first);
  };
  if (isUsed && !isa<IntegerType>(first.getType()))
    return;
  Location location = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  Value correct = isUsed ? computeLast(location) : Value();
  Value by = arith::ConstantOp::create(rewriter, location, step);
  SmallVector<Value> inits(loop.getInits()), results;
  inits.erase(inits.begin() + number);
  auto counted = scf::ForOp::create(
      rewriter, location, first, end, by, inits, nullptr,
      compare.getPredicate() == arith::CmpIPredicate::ult);
  // Variables keep their names.
  SmallVector<Value> arguments(counted.getRegionIterArgs());
  arguments.insert(arguments.begin() + number, counted.getInductionVar());
  for (auto [old, argument] :
       llvm::zip_equal(loop.getAfterArguments(), arguments))
    argument.setLoc(old.getLoc());
  auto yield = loop.getYieldOp();
  rewriter.modifyOpInPlace(
      yield, [&] { yield->eraseOperand(number); });
  Block *body = counted.getBody();
  if (!body->empty())
    rewriter.eraseOp(&body->back());
  rewriter.mergeBlocks(loop.getAfterBody(), body, arguments);
  results.append(counted.getResults().begin(), counted.getResults().end());
  results.insert(results.begin() + number, isUsed ? correct : first);
  rewriter.replaceOp(loop, results);
}

/// A call by which `function`, or what it calls, comes to one of `callers`
/// again; null if there is none.
static kernel::CallOp findRecursion(kernel::FuncOp function,
                                    const Functions &functions,
                                    llvm::DenseSet<Operation *> &callers) {
  kernel::CallOp found;
  callers.insert(function);
  function.walk([&](kernel::CallOp call) {
    kernel::FuncOp callee = functions.lookup(call.getCallee());
    found = callers.contains(callee)
                ? call
                : findRecursion(callee, functions, callers);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  callers.erase(function);
  return found;
}

namespace {
struct KernelToVector : sandwich::impl::KernelToVectorBase<KernelToVector> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder builder(&getContext());
    Functions functions;
    for (auto function : module.getOps<kernel::FuncOp>())
      functions[function.getSymName()] = function;
    SmallVector<kernel::FuncOp> raised;
    for (auto function :
         llvm::make_early_inc_range(module.getOps<kernel::FuncOp>())) {
      if (SymbolTable::getSymbolVisibility(function) !=
          SymbolTable::Visibility::Public)
        continue;
      llvm::DenseSet<Operation *> callers;
      if (kernel::CallOp call = findRecursion(function, functions, callers)) {
        call.emitWarning("is not raised: a function that calls itself");
        continue;
      }
      FailureOr<func::FuncOp> made = Raiser(function, functions, builder).run();
      if (failed(made))
        continue;
      raised.push_back(function);
    }
    // One that is called by what stays goes on under another name.
    for (kernel::FuncOp each : raised) {
      const StringRef old = each.getSymName();
      std::string name = old.str() + "_kernel";
      for (int number = 2; module.lookupSymbol(name); ++number)
        name = old.str() + "_kernel_" + std::to_string(number);
      module.walk([&](kernel::CallOp call) {
        if (call.getCallee() == old)
          call.setCallee(name);
      });
      SymbolTable::setSymbolName(each, name);
      SymbolTable::setSymbolVisibility(each, SymbolTable::Visibility::Private);
    }
    // What only those used is not needed any more.
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
        auto called = dyn_cast<kernel::FuncOp>(op);
        if (((called && called.isPrivate()) || isa<kernel::GlobalOp>(op)) &&
            SymbolTable::symbolKnownUseEmpty(&op, module)) {
          op.erase();
          changed = true;
        }
      }
    }
    SmallVector<scf::WhileOp> loops;
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::WhileOp loop : loops)
      countLoop(rewriter, loop);
  }
};
} // namespace
