//===- WeightAccess.cpp - Weights in the artifact's memory ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/Utils/WeightAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Target/Target.h"

using namespace mlir;
using namespace sandwich;

int64_t sandwich::getWeightAlignment(int64_t rank) {
  return rank == 2 ? 4096 : cacheLineBytes;
}

Value sandwich::getWeightSlice(OpBuilder &builder,
                               SymbolTableCollection &symbols, Operation *user,
                               FlatSymbolRefAttr name, Value layer) {
  lm::WeightOp weight = lm::lookupWeight(symbols, user, name);
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
  return memref::ViewOp::create(builder, loc, weight.getBufferType(), weights,
                                offset, ValueRange());
}
