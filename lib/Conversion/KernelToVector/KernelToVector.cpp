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

/// A loop whose index goes on by the same number as long as it, with an offset,
/// is before a bound, or behind one where it counts down.
struct CountedLoop {
  unsigned number = 0;
  Value bound;
  int64_t offset = 0, step = 0;
  /// Whether it goes on where it is equal, too; or until it is.
  bool mayBeEqual = false, isUntil = false;
  /// Of 32 bits or less.
  bool isUnsigned = false;
  /// The constant that it goes on by.
  Value stepValue;

  /// Whether it is `index < bound`, as those of scf.for are.
  bool isPlain() const {
    return step > 0 && offset == 0 && !mayBeEqual && !isUntil;
  }
};

} // namespace

/// The number that `value` is known to be, if it is no very large one.
static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  constexpr unsigned mostBits = 48;
  if (!matchPattern(value, m_ConstantInt(&constant)) ||
      constant.getSignificantBits() > mostBits)
    return std::nullopt;
  return constant.getSExtValue();
}

/// `value` as a variable of `block` and a number that is added to it.
static std::optional<std::pair<BlockArgument, int64_t>> asSum(Value value,
                                                              Block *block) {
  int64_t sum = 0;
  constexpr unsigned mostSteps = 64;
  for (unsigned step = 0; step < mostSteps; ++step) {
    Operation *op = value.getDefiningOp();
    if (!op) {
      auto argument = cast<BlockArgument>(value);
      return argument.getOwner() == block
                 ? std::optional(std::pair(argument, sum))
                 : std::nullopt;
    }
    std::optional<int64_t> added = isa<arith::AddIOp, arith::SubIOp>(op)
                                       ? constantOf(op->getOperand(1))
                                       : std::nullopt;
    if (!added)
      return std::nullopt;
    sum += isa<arith::AddIOp>(op) ? *added : -*added;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

/// Whether a number without a sign of 64 bits is less than half of all, so that
/// it may have a sign as well: sizes are, but not what is less than one.
static bool isSize(Value value, unsigned depth = 0) {
  constexpr unsigned deepest = 8;
  if (std::optional<int64_t> constant = constantOf(value))
    return *constant >= 0;
  Operation *op = value.getDefiningOp();
  if (!op) {
    // An argument without a sign; what loops carry may be anything.
    auto argument = cast<BlockArgument>(value);
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function &&
           function.getArgAttr(argument.getArgNumber(), unsignedName);
  }
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op))
    return true;
  if (depth > deepest)
    return false;
  const auto isOperand = [&](Value each) { return isSize(each, depth + 1); };
  if (isa<arith::MaxSIOp, arith::AndIOp>(op))
    return llvm::any_of(op->getOperands(), isOperand);
  // How far a loop before it came.
  if (auto less = dyn_cast<arith::SubIOp>(op)) {
    auto way = less.getRhs().getDefiningOp<arith::MulIOp>();
    auto turns = way ? way.getLhs().getDefiningOp<arith::DivSIOp>() : nullptr;
    return turns && isOperand(less.getLhs());
  }
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemUIOp, arith::ShRUIOp,
          arith::AddIOp, arith::MulIOp, arith::MinSIOp>(op))
    return llvm::all_of(op->getOperands(), isOperand);
  return false;
}

/// Moves `value`, and what it is computed of, out of `loop`, where nothing of
/// that depends on it; false where something does.
static bool hoist(Value value, scf::WhileOp loop, unsigned depth = 0) {
  if (!loop->isAncestor(value.getParentBlock()->getParentOp()))
    return true;
  constexpr unsigned deepest = 16;
  Operation *op = value.getDefiningOp();
  if (!op || depth > deepest || !isPure(op) || op->getNumRegions() != 0 ||
      !llvm::all_of(op->getOperands(),
                    [&](Value each) { return hoist(each, loop, depth + 1); }))
    return false;
  op->moveBefore(loop);
  return true;
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
    static constexpr std::pair<P, P> mirrored[] = {
        {P::slt, P::sgt}, {P::sle, P::sge}, {P::ult, P::ugt}, {P::ule, P::uge}};
    for (auto [less, more] : mirrored)
      if (predicate == less || predicate == more) {
        predicate = predicate == less ? more : less;
        break;
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
  counted.stepValue = next.getDefiningOp()->getOperand(1);
  counted.mayBeEqual =
      llvm::is_contained({P::sle, P::sge, P::ule, P::uge}, predicate);
  const bool isUnsigned =
      llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, predicate);
  // By single steps it comes to what it must not be.
  counted.isUntil =
      predicate == P::ne && std::abs(counted.step) == 1 && counted.offset == 0;
  const bool goesOn =
      counted.isUntil ||
      (counted.step > 0
           ? llvm::is_contained({P::slt, P::sle, P::ult, P::ule}, predicate)
           : llvm::is_contained({P::sgt, P::sge, P::ugt, P::uge}, predicate));
  if (!goesOn)
    return std::nullopt;
  Value first = loop.getInits()[counted.number];
  const bool isWide =
      lhs.getType().isIndex() || lhs.getType().getIntOrFloatBitWidth() >= 64;
  // Before a smaller number, none is the largest of all.
  if (isUnsigned && counted.offset < 0)
    return std::nullopt;
  counted.isUnsigned = isUnsigned && !(isWide && isSize(first));
  if (counted.isUnsigned && !counted.isPlain())
    return std::nullopt;
  if (!hoist(counted.bound, loop))
    return std::nullopt;
  return counted;
}

namespace {

/// Computes how far a loop counts. What is smaller than 64 bits is computed in
/// those, as its differences need not fit.
class CountBuilder {
public:
  CountBuilder(OpBuilder &builder, Location location, const CountedLoop &loop,
               Value first, Value bound)
      : builder(builder), location(location), loop(loop), first(first),
        bound(bound), type(first.getType()),
        wide(type.isIndex() || type.getIntOrFloatBitWidth() >= 64
                 ? type
                 : Type(builder.getI64Type())) {}

  Value constant(Type of, int64_t value) {
    return arith::ConstantOp::create(builder, location,
                                     builder.getIntegerAttr(of, value));
  }
  /// How often it goes on, of type `getWide()`.
  Value turns();
  /// The index after so many turns.
  Value valueAfter(Value turns);
  Type getWide() const { return wide; }

private:
  int64_t step() const { return std::abs(loop.step); }
  Value extended(Value value, bool withSign) {
    if (type == wide)
      return value;
    return withSign
               ? builder.createOrFold<arith::ExtSIOp>(location, wide, value)
               : builder.createOrFold<arith::ExtUIOp>(location, wide, value);
  }

  OpBuilder &builder;
  Location location;
  const CountedLoop &loop;
  Value first, bound;
  Type type, wide;
};

} // namespace

Value CountBuilder::turns() {
  Value from = loop.step > 0 ? first : bound,
        to = loop.step > 0 ? bound : first;
  // As many steps as there are numbers in between, be it around the largest.
  if (loop.isUntil)
    return extended(builder.createOrFold<arith::SubIOp>(location, to, from),
                    /*withSign=*/false);
  if (loop.isUnsigned) {
    // As many whole steps as lead from the first one to the end or beyond.
    Value runs = arith::CmpIOp::create(builder, location,
                                       arith::CmpIPredicate::ult, first, bound);
    Value count = arith::SubIOp::create(builder, location, bound, first);
    count = arith::SubIOp::create(builder, location, count, constant(type, 1));
    count = arith::DivUIOp::create(builder, location, count,
                                   constant(type, step()));
    count = arith::AddIOp::create(builder, location, count, constant(type, 1));
    count = arith::SelectOp::create(builder, location, runs, count,
                                    constant(type, 0));
    return extended(count, /*withSign=*/false);
  }
  Value span = builder.createOrFold<arith::SubIOp>(location, extended(to, true),
                                                   extended(from, true));
  const int64_t more = step() - (loop.mayBeEqual ? 0 : 1) +
                       (loop.step > 0 ? -loop.offset : loop.offset);
  if (more != 0)
    span = builder.createOrFold<arith::AddIOp>(location, span,
                                               constant(wide, more));
  span =
      builder.createOrFold<arith::MaxSIOp>(location, span, constant(wide, 0));
  return step() == 1 ? span
                     : builder.createOrFold<arith::DivSIOp>(
                           location, span, constant(wide, step()));
}

Value CountBuilder::valueAfter(Value turns) {
  Value way = step() == 1
                  ? turns
                  : builder.createOrFold<arith::MulIOp>(
                        location, turns, constant(turns.getType(), step()));
  if (way.getType() != type)
    way = builder.createOrFold<arith::TruncIOp>(location, type, way);
  return loop.step > 0
             ? builder.createOrFold<arith::AddIOp>(location, first, way)
             : builder.createOrFold<arith::SubIOp>(location, first, way);
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
  Value first = loop.getInits()[number];
  const Type type = first.getType();
  rewriter.setInsertionPoint(loop);
  CountBuilder count(rewriter, location, *found, first, found->bound);
  const bool isUsed = !loop.getResult(number).use_empty();
  const bool isPlain = found->isPlain();
  // Up as it does; else its turns.
  const bool isOwnIndex = found->step > 0 && !found->isUntil;
  Value lower = first, upper = found->bound, last = first;
  Value by = count.constant(type, std::abs(found->step));
  if (!isPlain || isUsed) {
    Value turns = count.turns();
    last = count.valueAfter(turns);
    if (!isPlain && isOwnIndex) {
      upper = last;
    } else if (!isPlain) {
      lower = count.constant(count.getWide(), 0);
      upper = turns;
      by = count.constant(count.getWide(), 1);
    }
  }
  SmallVector<Value> inits(loop.getInits()), results;
  inits.erase(inits.begin() + number);
  auto made = scf::ForOp::create(rewriter, location, lower, upper, by, inits,
                                 nullptr, found->isUnsigned);
  if (auto name = found->stepValue.getLoc()->findInstanceOf<NameLoc>())
    made->setAttr("kernel.step", name.getName());
  // Variables keep their names.
  SmallVector<Value> arguments(made.getRegionIterArgs());
  Value index = made.getInductionVar();
  if (!made.getBody()->empty())
    rewriter.eraseOp(&made.getBody()->back());
  rewriter.setInsertionPointToStart(made.getBody());
  Value now = isOwnIndex ? index : count.valueAfter(index);
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
    for (auto function : module.getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        function.removeArgAttr(i, StringAttr::get(&getContext(), unsignedName));
  }
};
} // namespace
