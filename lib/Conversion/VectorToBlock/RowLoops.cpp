//===- RowLoops.cpp - Loops that may do several turns at once -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;
using block::ReductionKind;

namespace {

/// Finds out whether a loop is a RowLoop.
class RowAnalysis {
public:
  RowAnalysis(scf::ForOp loop, const BlockLoops &blocks,
              const Matrices &matrices)
      : blocks(blocks), matrices(matrices) {
    made.loop = loop;
  }

  std::optional<RowLoop> run();

private:
  bool visit(Block &block);
  bool visit(Operation *op);
  bool visitAccess(Operation *op);
  bool visitElementwise(Operation *op);
  bool visitFor(scf::ForOp inner);
  bool findMemorySums();
  bool hasNoOtherAccess(Operation *store, Operation *load) const;
  /// How often the loop's index is in a place: rows where memory has some.
  std::optional<int64_t> factorOf(Operation *access) const;

  bool isPerRow(Value value) const { return made.perRow.contains(value); }
  bool isSum(Value value) const { return made.partialSums.contains(value); }

  const BlockLoops &blocks;
  const Matrices &matrices;
  RowLoop made;
  /// Numbers that are made of the loop's index.
  llvm::DenseSet<Value> places;
  llvm::DenseMap<Value, unsigned> variables;
  SmallVector<std::optional<ReductionKind>> kinds;
  bool reachesRows = false;
};

} // namespace

/// Whether both reach the same place in each turn.
static bool areSamePlace(Operation *lhs, Operation *rhs) {
  return indexFormOf(accessedIndex(lhs))
             .distanceTo(indexFormOf(accessedIndex(rhs))) == 0;
}

std::optional<int64_t> RowAnalysis::factorOf(Operation *access) const {
  Value memory = accessedMemory(access);
  scf::ForOp loop = made.loop;
  const Place place = matrices.placeOf(memory, accessedIndex(access));
  for (const IndexForm *form : {&place.row, &place.column})
    for (const auto &[value, factor] : form->terms)
      if (value != loop.getInductionVar() &&
          (places.contains(value) || isPerRow(value) || isSum(value)))
        return std::nullopt;
  const int64_t row = place.row.factorOf(loop.getInductionVar()),
                column = place.column.factorOf(loop.getInductionVar());
  const bool isVector = !isa<memref::LoadOp, memref::StoreOp>(access);
  // What is written of a row is so in no other one, whatever loops within a
  // turn are at.
  const IndexForm &rows = matrices.lengthOf(memory) ? place.row : place.column;
  if (writtenValue(access) && rows.factorOf(loop.getInductionVar()) != 0)
    for (const auto &[value, factor] : rows.terms)
      if (value != loop.getInductionVar() &&
          loop->isAncestor(Value(value).getParentBlock()->getParentOp()))
        return std::nullopt;
  // Numbers of one column are no neighbors.
  if (matrices.lengthOf(memory))
    return column == 0 && (row == 0 || (row == 1 && isVector))
               ? std::optional(row)
               : std::nullopt;
  return column == 0 || (column == 1 && !isVector) ? std::optional(column)
                                                   : std::nullopt;
}

bool RowAnalysis::visitAccess(Operation *op) {
  if (isa<vector::MaskedLoadOp, vector::MaskedStoreOp>(op))
    return false;
  std::optional<int64_t> factor = factorOf(op);
  if (!factor)
    return false;
  scf::ForOp loop = made.loop;
  Value memory = memoryOf(accessedMemory(op)), written = writtenValue(op);
  reachesRows |= *factor == 1;
  if (made.memorySums.contains(op))
    return true;
  if (written) {
    if (*factor != 1 || isSum(written) || places.contains(written))
      return false;
  } else if (*factor == 1) {
    made.perRow.insert(op->getResult(0));
  }
  // What is written of a turn is read in that one only.
  bool isFine = true;
  loop.getBody()->walk([&](Operation *other) {
    Value otherMemory = accessedMemory(other);
    if (!otherMemory || memoryOf(otherMemory) != memory ||
        (!written && !writtenValue(other)) || made.memorySums.contains(other))
      return;
    isFine &= *factor == 1 && areSamePlace(op, other);
  });
  return isFine;
}

bool RowAnalysis::visitElementwise(Operation *op) {
  Value result = op->getResult(0);
  const auto isPlace = [&](Value each) { return places.contains(each); };
  if (llvm::any_of(op->getOperands(), isPlace)) {
    // Of an index nothing but indices is made.
    if (!result.getType().isIntOrIndex() || result.getType().isInteger(1))
      return false;
    places.insert(result);
    return true;
  }
  SmallVector<Value> sums;
  for (Value each : op->getOperands())
    if (isSum(each))
      sums.push_back(each);
  if (!sums.empty()) {
    if (onlyChooses(op))
      return true;
    std::optional<Combination> step = findCombination(op);
    if (!step || (isSum(step->lhs) && isSum(step->rhs)))
      return false;
    Value before = isSum(step->lhs) ? step->lhs : step->rhs,
          added = isSum(step->lhs) ? step->rhs : step->lhs;
    const bool isIdempotent = step->kind == ReductionKind::Maximum ||
                              step->kind == ReductionKind::Minimum;
    if (!isPerRow(added) && !isIdempotent)
      return false;
    std::optional<ReductionKind> &kind = kinds[variables[before]];
    if (kind && *kind != step->kind)
      return false;
    kind = step->kind;
    variables[result] = variables[before];
    made.partialSums.insert(result);
    return true;
  }
  if (llvm::any_of(op->getOperands(),
                   [&](Value each) { return isPerRow(each); }))
    made.perRow.insert(result);
  return true;
}

bool RowAnalysis::visitFor(scf::ForOp inner) {
  for (Value bound :
       {inner.getLowerBound(), inner.getUpperBound(), inner.getStep()})
    if (places.contains(bound) || isPerRow(bound) || isSum(bound))
      return false;
  for (auto [init, argument] :
       llvm::zip_equal(inner.getInits(), inner.getRegionIterArgs())) {
    if (places.contains(init) || isSum(init))
      return false;
    if (isPerRow(init))
      made.perRow.insert(argument);
  }
  // What a turn adds may make a variable one of each row.
  for (bool changed = true; changed;) {
    changed = false;
    if (!visit(*inner.getBody()))
      return false;
    for (auto [yielded, argument] :
         llvm::zip_equal(inner.getYieldedValues(), inner.getRegionIterArgs())) {
      if (places.contains(yielded) || isSum(yielded))
        return false;
      if (isPerRow(yielded) && made.perRow.insert(argument).second)
        changed = true;
    }
  }
  for (auto [argument, result] :
       llvm::zip_equal(inner.getRegionIterArgs(), inner.getResults()))
    if (isPerRow(argument))
      made.perRow.insert(result);
  return true;
}

bool RowAnalysis::visit(Operation *op) {
  if (auto inner = dyn_cast<scf::ForOp>(op))
    return visitFor(inner);
  if (accessedMemory(op))
    return visitAccess(op);
  if (auto found = made.memorySums.find(op); found != made.memorySums.end())
    return llvm::none_of(op->getOperands(), [&](Value each) {
      return isSum(each) || places.contains(each);
    });
  if (isa<arith::ConstantOp>(op))
    return true;
  if (isa<vector::BroadcastOp, vector::ReductionOp>(op)) {
    Value operand = op->getOperand(0);
    if (isSum(operand) || places.contains(operand) || op->getNumOperands() != 1)
      return false;
    if (isPerRow(operand))
      made.perRow.insert(op->getResult(0));
    return true;
  }
  return isElementwise(op) && visitElementwise(op);
}

bool RowAnalysis::visit(Block &block) {
  for (Operation &op : block.without_terminator())
    if (!visit(&op))
      return false;
  return true;
}

/// Whether nothing but `store` and `load` reaches that memory in the loop.
bool RowAnalysis::hasNoOtherAccess(Operation *store, Operation *load) const {
  scf::ForOp loop = made.loop;
  Value memory = memoryOf(accessedMemory(store));
  return !loop.getBody()
              ->walk([&](Operation *op) {
                Value other = accessedMemory(op);
                return other && memoryOf(other) == memory && op != store &&
                               op != load
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Sums in memory, to which each turn adds at the same places.
bool RowAnalysis::findMemorySums() {
  scf::ForOp loop = made.loop;
  bool isFine = true;
  loop.getBody()->walk([&](vector::StoreOp store) {
    std::optional<int64_t> factor = factorOf(store);
    if (!factor || *factor != 0)
      return;
    Operation *step = store.getValueToStore().getDefiningOp();
    std::optional<Combination> combination = findCombination(step);
    Value before;
    const auto isBefore = [&](Value value) {
      auto load = value.getDefiningOp<vector::LoadOp>();
      return load && load->hasOneUse() &&
             load->getBlock() == store->getBlock() &&
             memoryOf(load.getBase()) == memoryOf(store.getBase()) &&
             areSamePlace(load, store) && hasNoOtherAccess(store, load);
    };
    if (combination && combination->kind == ReductionKind::Add)
      before = isBefore(combination->lhs)   ? combination->lhs
               : isBefore(combination->rhs) ? combination->rhs
                                            : Value();
    else if (auto fma = dyn_cast_if_present<math::FmaOp>(step))
      before = isBefore(fma.getC()) ? fma.getC() : Value();
    if (!before || !step->hasOneUse()) {
      isFine = false;
      return;
    }
    made.memorySums[store] = before;
    made.memorySums[step] = before;
    made.memorySums[before.getDefiningOp()] = before;
  });
  return isFine;
}

std::optional<RowLoop> RowAnalysis::run() {
  scf::ForOp loop = made.loop;
  if (constantOf(loop.getStep()) != 1 || loop.getUnsignedCmp() ||
      blocks.find(loop))
    return std::nullopt;
  places.insert(loop.getInductionVar());
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (isa<VectorType>(argument.getType()))
      return std::nullopt;
    made.partialSums.insert(argument);
    variables[argument] = number;
    kinds.push_back(std::nullopt);
  }
  if (!findMemorySums() || !visit(*loop.getBody()) || !reachesRows)
    return std::nullopt;
  for (auto [number, yielded] : llvm::enumerate(loop.getYieldedValues())) {
    auto variable = variables.find(yielded);
    if (variable == variables.end() || variable->second != number ||
        !kinds[number])
      return std::nullopt;
    made.reductions.push_back(*kinds[number]);
  }
  // Nothing but the next step of a sum sees how far it is.
  for (Value sum : made.partialSums)
    for (Operation *user : sum.getUsers())
      if (loop->isProperAncestor(user) && user->getNumResults() == 1 &&
          !onlyChooses(user) && !isSum(user->getResult(0)))
        return std::nullopt;
  return std::move(made);
}

RowLoops::RowLoops(func::FuncOp function, const BlockLoops &blocks,
                   const TileLoops &tiles, const Matrices &matrices) {
  // The innermost ones.
  function.walk([&](scf::ForOp loop) {
    bool hasOne = tiles.find(loop) != nullptr;
    loop.getBody()->walk(
        [&](scf::ForOp inner) { hasOne |= loops.contains(inner); });
    if (hasOne)
      return;
    if (std::optional<RowLoop> found =
            RowAnalysis(loop, blocks, matrices).run())
      loops.insert({loop, std::move(*found)});
  });
}

const RowLoop *RowLoops::find(scf::ForOp loop) const {
  auto found = loops.find(loop);
  return found == loops.end() ? nullptr : &found->second;
}
