//===- Accesses.cpp - What reads and writes memory ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;

Value widening::accessedMemory(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
            vector::MaskedStoreOp>([](auto each) { return each.getBase(); })
      .Case<memref::LoadOp, memref::StoreOp>(
          [](auto each) { return each.getMemRef(); })
      .Default([](Operation *) { return Value(); });
}

Value widening::accessedIndex(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp,
            vector::MaskedStoreOp, memref::LoadOp, memref::StoreOp>(
          [](auto each) { return each.getIndices().front(); });
}

Value widening::writtenValue(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<vector::StoreOp, vector::MaskedStoreOp>(
          [](auto each) { return each.getValueToStore(); })
      .Case<memref::StoreOp>([](auto each) { return each.getValue(); })
      .Default([](Operation *) { return Value(); });
}

bool widening::isWholeVector(Operation *access) {
  return isa<vector::LoadOp, vector::StoreOp>(access);
}

Value widening::memoryOf(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  return value;
}
