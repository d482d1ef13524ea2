//===- WeightAccess.cpp - Weights in the artifact's memory ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/WeightAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"

using namespace mlir;
using namespace sandwich;

MemRefType sandwich::getWeightBufferType(lm::WeightOp weight) {
  RankedTensorType type = weight.getTensorType();
  auto packing = dyn_cast_or_null<gemm::PackingAttr>(weight.getPackingAttr());
  if (!packing || type.getRank() != 2)
    return MemRefType::get(type.getShape(), type.getElementType());
  int64_t rows = type.getDimSize(0);
  if (std::optional<uint64_t> group = weight.getInterleave()) {
    // Each source is filled up to whole groups on its own.
    int64_t sources = weight.getSources().size();
    rows = sources * llvm::alignTo(rows / sources, *group);
  }
  return packing.getBufferType(rows, type.getDimSize(1), type.getElementType());
}

int64_t sandwich::getWeightSliceBytes(lm::WeightOp weight) {
  MemRefType type = getWeightBufferType(weight);
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

Value sandwich::getWeightSlice(OpBuilder &builder, Operation *user,
                               FlatSymbolRefAttr name, Value layer) {
  lm::WeightOp weight = lm::lookupWeight(user, name);
  Location loc = user->getLoc();
  Value offset = arith::ConstantIndexOp::create(
      builder, loc, static_cast<int64_t>(*weight.getOffset()));
  if (layer) {
    Value stride = arith::ConstantIndexOp::create(
        builder, loc, static_cast<int64_t>(*weight.getLayerStride()));
    Value distance = arith::MulIOp::create(builder, loc, layer, stride);
    offset = arith::AddIOp::create(builder, loc, offset, distance);
  }
  auto program = user->getParentOfType<func::FuncOp>();
  Value weights = phase::getArgument(program, phase::ProgramArgument::Weights);
  return memref::ViewOp::create(builder, loc, getWeightBufferType(weight),
                                weights, offset, ValueRange());
}
