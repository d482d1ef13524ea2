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
    shape.columnUnit = 2 * *weight.getInterleave();
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

/// The channels of the heads of a `rotate_append_kv` epilogue.
static LogicalResult verifyHeads(MatmulOp op) {
  lm::KVCacheType cache = lm::getKVCacheType(op.getKvCache().getType());
  if (!cache)
    return op.emitOpError("(C4) ") << op.getKvCache().getType()
                                   << " is not the buffer of a !lm.kv_cache";
  int64_t headDim = getHeadDim(op);
  if (headDim != cache.getHeadDim() || headDim % 2 != 0)
    return op.emitOpError("(C4) table must have the channels of a head of the "
                          "cache, an even number, got ")
           << headDim << " and " << cache.getHeadDim();
  if (lm::getDestinationType(op).getDimSize(1) % headDim != 0)
    return op.emitOpError("(C4) result must be whole heads of ")
           << headDim << " channels";
  if (op.getNormEpsilon() && !lm::isPositive(*op.getNormEpsilon()))
    return op.emitOpError("(C5) epsilon must be finite and positive");
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(lm::verifyForm(*this, getResult(), getDestination())))
    return failure();
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
  int64_t result = lm::getDestinationType(*this).getDimSize(1);
  if (getResidual() && channels(getResidual()) != result)
    return emitOpError("(C4) residual must have ") << result << " channels";
  return rotates ? verifyHeads(*this) : success();
}

/// The rows of the weight from which `op` makes its result.
static int64_t getNeededRows(MatmulOp op) {
  int64_t result = lm::getDestinationType(op).getDimSize(1);
  switch (op.getEpilogue()) {
  case Epilogue::None:
  case Epilogue::AddResidual:
    return result;
  case Epilogue::SiluMul:
    return 2 * result;
  case Epilogue::RotateAppendKV: {
    lm::KVCacheType cache = lm::getKVCacheType(op.getKvCache().getType());
    return result + 2 * cache.getHeads() * cache.getHeadDim();
  }
  }
  llvm_unreachable("an epilogue without a case");
}

LogicalResult MatmulOp::verifySymbolUses(SymbolTableCollection &symbols) {
  bool hasLayers = static_cast<bool>(getLayer());
  bool interleaved = getEpilogue() == Epilogue::SiluMul;
  FailureOr<lm::WeightOp> weight = lm::verifyWeightUse(
      *this, symbols, getWeightAttr(),
      {{ShapedType::kDynamic, channels(getInput())}, hasLayers, interleaved},
      "(C2)");
  if (failed(weight))
    return failure();
  if (interleaved && weight->getSources().size() != 2)
    return emitOpError("(C2) ")
           << getWeightAttr()
           << " must be made from a gate and an up projection, not from "
           << weight->getSources().size() << " sources";
  int64_t rows = weight->getTensorType().getDimSize(0);
  if (rows != getNeededRows(*this))
    return emitOpError("(C4) ")
           << getWeightAttr() << " must have " << getNeededRows(*this)
           << " rows for this result";
  auto verifyVector = [&](FlatSymbolRefAttr name, int64_t size) {
    return success(!name ||
                   succeeded(lm::verifyWeightUse(*this, symbols, name,
                                                 {{size}, hasLayers}, "(C5)")));
  };
  if (failed(verifyVector(getBiasAttr(), rows)))
    return failure();
  if (getQueryNorm() &&
      (failed(verifyVector(getQueryNormAttr(), getHeadDim(*this))) ||
       failed(verifyVector(getKeyNormAttr(), getHeadDim(*this)))))
    return failure();

  if (!getSchedules())
    return success();
  MatmulShape shape = getShape(*this);
  Type inputType = cast<ShapedType>(getInput().getType()).getElementType();
  for (ScheduleAttr schedule : getSchedules()->getSchedules()) {
    const MicroKernel &kernel = schedule.getSchedule().microKernel;
    if (Status status = sandwich::verify(schedule.getSchedule(), shape);
        !status)
      return emitOpError("(C6) ") << status.error().message;
    if ((packingOf(kernel.isa).kPack == 2) != inputType.isBF16())
      return emitOpError("(C6) ")
             << kernel.name() << " does not read an input of " << inputType;
  }
  return success();
}

void MatmulOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  lm::getBufferEffects(*this, getDestinationMutable(), effects);
  if (getKvCache())
    effects.emplace_back(MemoryEffects::Write::get(), &getKvCacheMutable()[0]);
}
