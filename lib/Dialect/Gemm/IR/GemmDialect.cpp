//===- GemmDialect.cpp - The scheduled matmul dialect ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

#include "sandwich/Dialect/Gemm/IR/GemmDialect.cpp.inc"
#include "sandwich/Dialect/Gemm/IR/GemmEnums.cpp.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Gemm/IR/GemmOps.cpp.inc"

void GemmDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Gemm/IR/GemmOps.cpp.inc"
      >();
}

static int64_t channels(Value value) {
  return cast<ShapedType>(value.getType()).getDimSize(1);
}

int64_t gemm::getHeadDim(MatmulOp op) { return channels(op.getRotaryTable()); }

MatmulShape gemm::getShape(MatmulOp op) {
  lm::WeightOp weight = lm::lookupWeight(op, op.getWeightAttr());
  RankedTensorType type = weight.getTensorType();
  MatmulShape shape{.n = type.getDimSize(0), .k = type.getDimSize(1)};
  shape.bf16Weights = type.getElementType().isBF16();
  if (op.getEpilogue() == Epilogue::RotateAppendKV)
    shape.columnUnit = getHeadDim(op);
  if (op.getEpilogue() == Epilogue::SiluMul)
    shape.columnUnit = 2 * weight.getInterleave().value_or(1);
  return shape;
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Type result,
                     Value input, FlatSymbolRefAttr weight) {
  build(builder, state, result, input, weight, /*bias=*/nullptr,
        /*layer=*/nullptr,
        EpilogueAttr::get(builder.getContext(), Epilogue::None),
        /*residual=*/nullptr, /*rotary_table=*/nullptr, /*kv_cache=*/nullptr,
        /*positions=*/nullptr, /*sequences=*/nullptr, /*block_tables=*/nullptr,
        /*query_norm=*/nullptr, /*key_norm=*/nullptr,
        /*norm_epsilon=*/nullptr, /*schedules=*/nullptr,
        /*destination=*/nullptr);
}

/// The size of the vector `name` refers to, or an error on `op`.
static LogicalResult verifyVector(MatmulOp op, FlatSymbolRefAttr name,
                                  int64_t size) {
  if (!name)
    return success();
  lm::WeightOp weight = lm::lookupWeight(op, name);
  if (!weight || weight.getTensorType().getShape() != ArrayRef(size) ||
      weight.getLayers().has_value() != static_cast<bool>(op.getLayer()))
    return op.emitOpError("(C5) ")
           << name << " must be a weight of " << size << " elements"
           << (op.getLayer() ? " for each layer" : "");
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(lm::verifyForm(*this, getResult(), getDestination())))
    return failure();
  lm::WeightOp weight = lm::lookupWeight(*this, getWeightAttr());
  if (!weight || weight.getTensorType().getRank() != 2 ||
      weight.getTensorType().getDimSize(1) != channels(getInput()) ||
      weight.getLayers().has_value() != static_cast<bool>(getLayer()))
    return emitOpError("(C2) ") << getWeightAttr() << " must be a weight with "
                                << channels(getInput()) << " input channels"
                                << (getLayer() ? " for each layer" : "");

  Epilogue epilogue = getEpilogue();
  bool rotates = epilogue == Epilogue::RotateAppendKV;
  bool inBuffers = static_cast<bool>(getDestination());
  if (static_cast<bool>(getResidual()) != (epilogue == Epilogue::AddResidual) ||
      static_cast<bool>(getRotaryTable()) != rotates ||
      static_cast<bool>(getKvCache()) != rotates ||
      static_cast<bool>(getPositions()) != rotates ||
      static_cast<bool>(getSequences()) != rotates ||
      static_cast<bool>(getBlockTables()) != (rotates && inBuffers) ||
      (getQueryNorm().has_value() && !rotates) ||
      getQueryNorm().has_value() != getKeyNorm().has_value() ||
      getQueryNorm().has_value() != getNormEpsilon().has_value())
    return emitOpError("(C3) has operands that epilogue '")
           << stringifyEpilogue(epilogue) << "' does not take, or lacks one";

  int64_t sums = weight.getTensorType().getDimSize(0);
  int64_t result = lm::getDestinationType(*this).getDimSize(1);
  if (epilogue == Epilogue::SiluMul) {
    // The weight itself may not be verified yet.
    if (weight.getInterleave().value_or(0) == 0 ||
        *weight.getInterleave() > lm::maxInterleave)
      return emitOpError("(C3) needs a weight that interleaves gate and up");
    if (result * 2 != sums)
      return emitOpError("(C4) result must have ") << sums / 2 << " channels";
  } else if (rotates) {
    int64_t headDim = getHeadDim(*this);
    if (headDim > lm::maxHeadDim)
      return emitOpError("(C4) heads must have at most ")
             << lm::maxHeadDim << " channels";
    if (result % headDim != 0 || sums % headDim != 0 || result >= sums ||
        (sums - result) / headDim % 2 != 0)
      return emitOpError("(C4) channels must be query heads, and as many key "
                         "as value heads, of ")
             << headDim;
    if (failed(verifyVector(*this, getQueryNormAttr(), headDim)) ||
        failed(verifyVector(*this, getKeyNormAttr(), headDim)))
      return failure();
  } else if (result != sums) {
    return emitOpError("(C4) result must have ") << sums << " channels";
  }
  if (getResidual() && channels(getResidual()) != result)
    return emitOpError("(C4) residual must have ") << result << " channels";
  if (failed(verifyVector(*this, getBiasAttr(), sums)))
    return failure();

  if (!getSchedules())
    return success();
  MatmulShape shape = getShape(*this);
  bool bf16Input =
      lm::getDestinationType(*this) &&
      cast<ShapedType>(getInput().getType()).getElementType().isBF16();
  for (ScheduleAttr schedule : getSchedules()->getSchedules()) {
    const MicroKernel &kernel = schedule.getSchedule().microKernel;
    if (Status status = sandwich::verify(schedule.getSchedule(), shape);
        !status)
      return emitOpError("(C6) ") << status.error().message;
    if ((packingOf(kernel.isa).kPack == 2) != bf16Input)
      return emitOpError("(C6) ")
             << kernel.name() << " does not read an input of "
             << cast<ShapedType>(getInput().getType()).getElementType();
  }
  return success();
}

void MatmulOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  lm::getBufferEffects(*this, getDestination(), effects);
  if (getKvCache())
    effects.emplace_back(MemoryEffects::Write::get(), &getKvCacheMutable()[0]);
}
