//===- TileDialect.cpp - The dialect of tile registers --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::tile;

#include "sandwich/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "sandwich/Dialect/Tile/IR/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Tile/IR/TileAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Tile/IR/TileOps.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Tile/IR/TileAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

LogicalResult ConfigureOp::verify() {
  APInt rows;
  if (matchPattern(getRows(), m_ConstantInt(&rows)) &&
      (rows.getSExtValue() < 1 || rows.getSExtValue() > maxRows))
    return emitOpError("(C1) tiles have 1 to ")
           << maxRows << " rows, not " << rows.getSExtValue();
  return success();
}

/// The constraints that loads and stores share.
template <typename Op> static LogicalResult verifyPlace(Op op) {
  auto type = cast<MemRefType>(op.getBase().getType());
  if (static_cast<int64_t>(op.getIndices().size()) != type.getRank())
    return op.emitOpError("(C1) needs an index for each dimension of ")
           << type << ", not " << op.getIndices().size();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.empty() ||
      strides.back() != 1)
    return op.emitOpError("(C2) needs a contiguous last dimension, not ")
           << type;
  if (!op.getStride() && type.getRank() < 2)
    return op.emitOpError("(C3) needs a stride beside one dimension");
  return success();
}

LogicalResult LoadOp::verify() { return verifyPlace(*this); }

LogicalResult StoreOp::verify() { return verifyPlace(*this); }

LogicalResult MultiplyOp::verify() {
  if (getSums() >= firstWeightTile || getInput() >= firstWeightTile ||
      getSums() == getInput())
    return emitOpError("(C1) sums and input must be different tiles of 0 to ")
           << firstWeightTile - 1 << ", not " << getSums() << " and "
           << getInput();
  if (getWeight() < firstWeightTile)
    return emitOpError("(C2) weight must be tile ")
           << firstWeightTile << " or " << numTiles - 1 << ", not "
           << getWeight();
  return success();
}
