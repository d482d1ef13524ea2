//===- Assertions.cpp - What parameters decide --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

namespace {

/// Folds what depends on sizes and parameters alone.
class Evaluator {
public:
  explicit Evaluator(const Bindings &bindings) : bindings(bindings) {}

  /// What `value` is; null if that is not known.
  Attribute evaluate(Value value) {
    auto [found, isNew] = known.try_emplace(value);
    if (!isNew)
      return found->second;
    constexpr int mostDepth = 256;
    if (depth == mostDepth)
      return {};
    ++depth;
    Attribute result = compute(value);
    --depth;
    known[value] = result;
    return result;
  }

private:
  Attribute compute(Value value) {
    Operation *op = value.getDefiningOp();
    Attribute constant;
    if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0)
      return {};
    if (matchPattern(value, m_Constant(&constant)))
      return constant;
    if (auto size = dyn_cast<SizeOp>(op)) {
      std::optional<int64_t> number = knownSize(size.getSize(), bindings);
      return number ? IntegerAttr::get(size.getType(), *number) : Attribute();
    }
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(evaluate(operand));
      if (!operands.back())
        return {};
    }
    // Folding may turn operands around.
    Operation *copy = op->clone();
    SmallVector<OpFoldResult> results;
    Attribute result;
    if (succeeded(copy->fold(operands, results)) && results.size() == 1) {
      result = dyn_cast<Attribute>(results[0]);
      if (!result)
        result = evaluate(cast<Value>(results[0]));
    }
    copy->destroy();
    return result;
  }

  const Bindings &bindings;
  DenseMap<Value, Attribute> known;
  int depth = 0;
};

} // namespace

std::optional<bool> block::evaluate(AssertOp op, const Bindings &bindings) {
  auto holds = dyn_cast_or_null<BoolAttr>(
      Evaluator(bindings).evaluate(op.getCondition()));
  return holds ? std::optional(holds.getValue()) : std::nullopt;
}

void block::foldBranches(func::FuncOp kernel, const Bindings &bindings) {
  // Those within others come first, and stay where they are until then.
  SmallVector<std::pair<scf::IfOp, bool>> known;
  Evaluator evaluator(bindings);
  kernel.walk([&](scf::IfOp branch) {
    if (auto holds = dyn_cast_or_null<BoolAttr>(
            evaluator.evaluate(branch.getCondition())))
      known.push_back({branch, holds.getValue()});
  });
  for (auto [branch, holds] : known) {
    if (Block *side = holds ? branch.thenBlock() : branch.elseBlock()) {
      Operation *yield = side->getTerminator();
      branch.replaceAllUsesWith(yield->getOperands());
      yield->erase();
      branch->getBlock()->getOperations().splice(branch->getIterator(),
                                                 side->getOperations());
    }
    branch.erase();
  }
}

bool block::holdAssertions(func::FuncOp kernel, const Bindings &bindings) {
  return llvm::all_of(kernel.getOps<AssertOp>(), [&](AssertOp op) {
    return evaluate(op, bindings).value_or(true);
  });
}
