//===- TileLoops.cpp - Loops over tiles of any size -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoops.h"

#include "TileIndependence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;
using block::ReductionKind;

/// The smaller one of what is left of `loop` and a number, which is `value`;
/// nothing if it is something else.
static std::optional<int64_t> sizeOfTurn(scf::ForOp loop, Value value) {
  std::optional<Combination> choice = findCombination(value.getDefiningOp());
  if (!choice || choice->kind != ReductionKind::Minimum)
    return std::nullopt;
  IndexForm rest = indexFormOf(loop.getUpperBound());
  rest.add(indexFormOf(loop.getInductionVar()), -1);
  for (auto [left, size] : {std::pair(choice->lhs, choice->rhs),
                            std::pair(choice->rhs, choice->lhs)})
    if (indexFormOf(left).distanceTo(rest) == 0)
      if (std::optional<int64_t> known = constantOf(size))
        return known;
  return std::nullopt;
}

namespace {

/// Finds out whether a loop is a TileLoop.
class TileAnalysis {
public:
  TileAnalysis(scf::ForOp loop, const BlockLoops &blocks) : blocks(blocks) {
    made.loop = loop;
  }

  std::optional<TileLoop> run();

private:
  bool findTurns();
  bool checkIndices();
  bool checkIndex(const IndexForm &form, Value memory);
  bool isStep(Value value) const { return llvm::is_contained(steps, value); }

  const BlockLoops &blocks;
  TileLoop made;
  /// Which step of a turn inner loops are at.
  SmallVector<Value> steps;
  /// Numbers that are made of the loop's index, and of those.
  llvm::DenseSet<Value> places;
};

} // namespace

bool TileAnalysis::findTurns() {
  scf::ForOp loop = made.loop;
  std::optional<int64_t> step = constantOf(loop.getStep());
  if (!step || *step < 2 || loop.getUnsignedCmp() || blocks.find(loop))
    return false;
  made.size = *step;
  loop.getBody()->walk([&](Operation *op) {
    if (op->getNumResults() == 1 && op->getResult(0).getType().isIntOrIndex() &&
        sizeOfTurn(loop, op->getResult(0)) == made.size)
      made.turns.push_back(op->getResult(0));
  });
  for (Value turn : made.turns)
    for (OpOperand &use : turn.getUses()) {
      auto inner = dyn_cast<scf::ForOp>(use.getOwner());
      // All else that is as large is large as it was written.
      if (!inner || inner.getUpperBound() != turn ||
          constantOf(inner.getLowerBound()) != 0 ||
          constantOf(inner.getStep()) != 1 || blocks.find(inner))
        return false;
      steps.push_back(inner.getInductionVar());
    }
  return !steps.empty();
}

/// Whether a place is that of a step, in memory of the turn or in all.
bool TileAnalysis::checkIndex(const IndexForm &form, Value memory) {
  scf::ForOp loop = made.loop;
  // What is made of a place in another way tells turns apart.
  for (const auto &[value, factor] : form.terms)
    if (places.contains(value) && value != loop.getInductionVar() &&
        !isStep(value))
      return false;
  const int64_t whole = form.factorOf(loop.getInductionVar());
  int64_t step = 0;
  for (Value each : steps)
    step += form.factorOf(each);
  if (whole == step)
    return true;
  // One of memory that is as large as a turn.
  auto alloca = memoryOf(memory).getDefiningOp<memref::AllocaOp>();
  if (whole != 0 || step != 1 || form.terms.size() != 1 || form.constant != 0 ||
      !alloca || alloca.getType().getShape() != ArrayRef<int64_t>(made.size))
    return false;
  if (!llvm::is_contained(made.memory, alloca))
    made.memory.push_back(alloca);
  return true;
}

/// Whether what is computed depends on which step of all it is for, and not on
/// which one of a turn.
bool TileAnalysis::checkIndices() {
  scf::ForOp loop = made.loop;
  places.insert(steps.begin(), steps.end());
  places.insert(loop.getInductionVar());
  bool isFine = true;
  loop.getBody()->walk([&](Operation *op) {
    if (!isFine)
      return;
    if (Value memory = accessedMemory(op)) {
      isFine &= checkIndex(indexFormOf(accessedIndex(op)), memory);
      if (Value written = writtenValue(op))
        isFine &= !places.contains(written);
      return;
    }
    if (llvm::none_of(op->getOperands(),
                      [&](Value each) { return places.contains(each); }))
      return;
    // Sums and products are seen through where they are indices; how large a
    // turn is, is computed of one.
    if (!isElementwise(op) || !op->getResult(0).getType().isIntOrIndex()) {
      isFine = false;
      return;
    }
    if (!llvm::is_contained(made.turns, op->getResult(0)))
      places.insert(op->getResult(0));
  });
  if (!isFine)
    return false;
  // Memory of a turn has nothing else in it, and is not used elsewhere.
  for (memref::AllocaOp alloca : made.memory)
    for (Operation *user : alloca->getUsers()) {
      if (!isa<memref::LoadOp, memref::StoreOp>(user) ||
          !loop->isProperAncestor(user))
        return false;
      const IndexForm form = indexFormOf(accessedIndex(user));
      if (form.terms.size() != 1 || form.constant != 0 ||
          !isStep(form.terms.begin()->first))
        return false;
    }
  return true;
}

std::optional<TileLoop> TileAnalysis::run() {
  if (!findTurns() || !checkIndices() || !isIndependentOfSize(made, steps))
    return std::nullopt;
  auto name = made.loop->getAttrOfType<StringAttr>("kernel.step");
  made.name =
      name && block::isName(name.getValue()) ? name.getValue().str() : "BLOCK";
  return std::move(made);
}

TileLoops::TileLoops(func::FuncOp function, const BlockLoops &blocks) {
  function.walk([&](scf::ForOp loop) {
    if (std::optional<TileLoop> found = TileAnalysis(loop, blocks).run())
      loops.push_back(std::move(*found));
  });
}

const TileLoop *TileLoops::find(scf::ForOp loop) const {
  auto found = llvm::find_if(
      loops, [&](const TileLoop &each) { return each.loop == loop; });
  return found == loops.end() ? nullptr : &*found;
}

const TileLoop *TileLoops::findTurn(Value value) const {
  auto found = llvm::find_if(loops, [&](const TileLoop &each) {
    return llvm::is_contained(each.turns, value);
  });
  return found == loops.end() ? nullptr : &*found;
}

const TileLoop *TileLoops::findMemory(memref::AllocaOp memory) const {
  auto found = llvm::find_if(loops, [&](const TileLoop &each) {
    return llvm::is_contained(each.memory, memory);
  });
  return found == loops.end() ? nullptr : &*found;
}
