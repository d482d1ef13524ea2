//===- MoveBF16.cpp - bf16 that is moved as integers ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace sandwich {
#define GEN_PASS_DEF_MOVEBF16
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

/// `type` with integers in the place of bf16; null if it has none.
static Type withIntegers(Type type) {
  if (!getElementTypeOrSelf(type).isBF16())
    return {};
  Type integer = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(integer)) : integer;
}

/// Whether `op` moves numbers, whatever they are.
static bool moves(Operation *op) {
  if (isa<LLVM::MaskedLoadOp, LLVM::MaskedStoreOp, LLVM::SelectOp,
          LLVM::ShuffleVectorOp, LLVM::InsertElementOp, LLVM::ExtractElementOp,
          LLVM::vector_interleave2>(op))
    return llvm::any_of(
        llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()),
        [](Type type) { return withIntegers(type) != Type(); });
  return false;
}

namespace {
struct MoveBF16 : sandwich::impl::MoveBF16Base<MoveBF16> {
  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation()->walk([&](Operation *op) {
      if (moves(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      OpBuilder builder(op);
      for (OpOperand &operand : op->getOpOperands())
        if (Type type = withIntegers(operand.get().getType()))
          operand.set(LLVM::BitcastOp::create(builder, op->getLoc(), type,
                                              operand.get()));
      builder.setInsertionPointAfter(op);
      for (OpResult result : op->getResults())
        if (Type type = withIntegers(result.getType())) {
          auto back = LLVM::BitcastOp::create(builder, op->getLoc(),
                                              result.getType(), result);
          result.replaceAllUsesExcept(back, back);
          result.setType(type);
        }
    }
  }
};
} // namespace
