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

namespace {

/// A loop whose index goes on by the same number as long as it is before, or
/// behind, a bound: `index + offset < bound`.
struct CountedLoop {
  unsigned number = 0;
  /// Of which the index is less, or larger where it is counted down; one of it
  /// may be equal, too.
  Value bound;
  int64_t offset = 0, step = 0;
  bool mayBeEqual = false, isUnsigned = false;
  /// Which constant it goes on by.
  Value stepValue;

  bool isPlain() const {
    return step > 0 && offset == 0 && !mayBeEqual;
  }
};

} // namespace

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

/// `value` as a variable of `block` and a number that is added to it.
static std::optional<std::pair<BlockArgument, int64_t>>
asSum(Value value, Block *block) {
  int64_t sum = 0;
  while (Operation *op = value.getDefiningOp()) {
    std::optional<int64_t> added =
        isa<arith::AddIOp, arith::SubIOp>(op) ? constantOf(op->getOperand(1))
                                              : std::nullopt;
    if (!added)
      return std::nullopt;
    sum += isa<arith::AddIOp>(op) ? *added : -*added;
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  if (argument.getOwner() != block)
    return std::nullopt;
  return std::pair(argument, sum);
}

static std::optional<CountedLoop> findCount(scf::WhileOp loop) {
  using P = arith::CmpIPredicate;
  auto condition = cast<scf::ConditionOp>(loop.getBefore().front().back());
  auto compare = condition.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || condition.getArgs() != loop.getBeforeArguments() ||
      !llvm::all_of(loop.getBeforeBody()->without_terminator(),
                    [](Operation &op) { return isMemoryEffectFree(&op); }))
    return std::nullopt;
  P predicate = compare.getPredicate();
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  auto sum = asSum(lhs, loop.getBeforeBody());
  if (!sum) {
    sum = asSum(rhs, loop.getBeforeBody());
    std::swap(lhs, rhs);
    switch (predicate) {
    case P::slt: predicate = P::sgt; break;
    case P::sle: predicate = P::sge; break;
    case P::sgt: predicate = P::slt; break;
    case P::sge: predicate = P::sle; break;
    case P::ult: predicate = P::ugt; break;
    case P::ule: predicate = P::uge; break;
    case P::ugt: predicate = P::ult; break;
    case P::uge: predicate = P::ule; break;
    default: break;
    }
  }
  if (!sum)
    return std::nullopt;
  CountedLoop counted;
  counted.number = sum->first.getArgNumber();
  counted.offset = sum->second;
  counted.bound = rhs;
  Value next = loop.getYieldOp().getOperand(counted.number);
  auto after = asSum(next, loop.getAfterBody());
  if (!after || after->first.getArgNumber() != counted.number ||
      after->second == 0)
    return std::nullopt;
  counted.step = after->second;
  counted.stepValue =
      next.getDefiningOp() ? next.getDefiningOp()->getOperand(1) : Value();
  const bool isUp = counted.step > 0;
  counted.mayBeEqual = llvm::is_contained({P::sle, P::sge, P::ule, P::uge},
                                          predicate);
  counted.isUnsigned = llvm::is_contained({P::ult, P::ule, P::ugt, P::uge},
                                          predicate);
  const bool goesOnBelow =
      llvm::is_contained({P::slt, P::sle, P::ult, P::ule}, predicate);
  const bool goesOnAbove =
      llvm::is_contained({P::sgt, P::sge, P::ugt, P::uge}, predicate);
  // By single steps it comes to what it must not be.
  const bool isUntil =
      predicate == P::ne && std::abs(counted.step) == 1 && counted.offset == 0;
  if (isUntil ? false : !(isUp ? goesOnBelow : goesOnAbove))
    return std::nullopt;
  counted.isUnsigned |= isUntil;
  // Numbers of 32 bits without a sign may wrap around.
  const unsigned width =
      lhs.getType().isIndex() ? 64 : lhs.getType().getIntOrFloatBitWidth();
  if (counted.isUnsigned && width < 64 && !counted.isPlain())
    return std::nullopt;
  // What is known of the bound may stand in the loop, and nothing else of it.
  if (loop->isAncestor(counted.bound.getParentBlock()->getParentOp()) &&
      !isa_and_nonnull<arith::ConstantOp>(counted.bound.getDefiningOp()))
    return std::nullopt;
  return counted;
}

/// Makes `loop` one that counts, if it is one. Upstream's rewrite takes the
/// index behind the loop for that of the last turn, knows no other condition
/// than one of less, and loses the names of variables.
static void countLoop(IRRewriter &rewriter, scf::WhileOp loop) {
  std::optional<CountedLoop> found = findCount(loop);
  if (!found)
    return;
  const unsigned number = found->number;
  Location location = loop.getLoc();
  Value first = loop.getInits()[number], bound = found->bound;
  Type type = first.getType();
  rewriter.setInsertionPoint(loop);
  if (loop->isAncestor(bound.getParentBlock()->getParentOp()))
    bound = rewriter.clone(*bound.getDefiningOp())->getResult(0);
  const int64_t step = std::abs(found->step);
  const auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(rewriter, location,
                                     rewriter.getIntegerAttr(type, value));
  };
  // How often it goes on; what it counts are sizes, which have a sign of their
  // own in 64 bits.
  const auto computeTurns = [&]() -> Value {
    Value from = found->step > 0 ? first : bound,
          to = found->step > 0 ? bound : first;
    Value span = arith::SubIOp::create(rewriter, location, to, from);
    const int64_t more = step - (found->mayBeEqual ? 0 : 1) +
                         (found->step > 0 ? -found->offset : found->offset);
    if (more != 0)
      span = arith::AddIOp::create(rewriter, location, span, constant(more));
    span = arith::MaxSIOp::create(rewriter, location, span, constant(0));
    return step == 1 ? span
                     : arith::DivSIOp::create(rewriter, location, span,
                                              constant(step))
                           .getResult();
  };
  const auto valueAfter = [&](Value turns) -> Value {
    Value way = step == 1 ? turns
                          : arith::MulIOp::create(rewriter, location, turns,
                                                  constant(step))
                                .getResult();
    return found->step > 0
               ? arith::AddIOp::create(rewriter, location, first, way)
                     .getResult()
               : arith::SubIOp::create(rewriter, location, first, way)
                     .getResult();
  };
  const bool isUsed = !loop.getResult(number).use_empty();
  Value lower = first, upper = bound, by = constant(step), last = first;
  const bool isUp = found->step > 0;
  if (!found->isPlain()) {
    Value turns = computeTurns();
    last = valueAfter(turns);
    lower = isUp ? first : constant(0);
    upper = isUp ? last : turns;
    by = isUp ? by : constant(1);
  } else if (isUsed) {
    if (found->isUnsigned && !type.isIndex() &&
        type.getIntOrFloatBitWidth() < 64) {
      // As many whole steps as lead from the first one to the end or beyond.
      Value runs = arith::CmpIOp::create(
          rewriter, location, arith::CmpIPredicate::ult, first, bound);
      Value turns = arith::SubIOp::create(rewriter, location, bound, first);
      turns = arith::SubIOp::create(rewriter, location, turns, constant(1));
      turns = arith::DivUIOp::create(rewriter, location, turns, by);
      turns = arith::AddIOp::create(rewriter, location, turns, constant(1));
      last = arith::SelectOp::create(rewriter, location, runs,
                                     valueAfter(turns), first);
    } else {
      last = valueAfter(computeTurns());
    }
  }
  SmallVector<Value> inits(loop.getInits()), results;
  inits.erase(inits.begin() + number);
  auto made = scf::ForOp::create(rewriter, location, lower, upper, by, inits,
                                 nullptr,
                                 found->isPlain() && found->isUnsigned &&
                                     !type.isIndex() &&
                                     type.getIntOrFloatBitWidth() < 64);
  if (found->stepValue)
    if (auto name = found->stepValue.getLoc()->findInstanceOf<NameLoc>())
      made->setAttr("kernel.step", name.getName());
  // Variables keep their names.
  SmallVector<Value> arguments(made.getRegionIterArgs());
  Value index = made.getInductionVar();
  if (!made.getBody()->empty())
    rewriter.eraseOp(&made.getBody()->back());
  rewriter.setInsertionPointToStart(made.getBody());
  Value now = isUp ? index : valueAfter(index);
  arguments.insert(arguments.begin() + number, now);
  for (auto [old, argument] :
       llvm::zip_equal(loop.getAfterArguments(), arguments))
    argument.setLoc(old.getLoc());
  auto yield = loop.getYieldOp();
  rewriter.modifyOpInPlace(yield, [&] { yield->eraseOperand(number); });
  rewriter.mergeBlocks(loop.getAfterBody(), made.getBody(), arguments);
  results.append(made.getResults().begin(), made.getResults().end());
  results.insert(results.begin() + number, last);
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
      ::countLoop(rewriter, loop);
  }
};
} // namespace
