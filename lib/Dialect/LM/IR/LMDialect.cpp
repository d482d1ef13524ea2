//===- LMDialect.cpp - The language-model dialect -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/CheckedMath.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

#include "sandwich/Dialect/LM/IR/LMDialect.cpp.inc"
#include "sandwich/Dialect/LM/IR/LMEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMAttributes.cpp.inc"

/// Reads what `printFrequencies` prints.
static ParseResult parseFrequencies(OpAsmParser &parser,
                                    DenseF32ArrayAttr &frequencies) {
  SmallVector<float> values;
  auto parseOne = [&]() -> ParseResult {
    APFloat value(APFloat::IEEEsingle());
    if (parser.parseFloat(value.getSemantics(), value))
      return failure();
    values.push_back(value.convertToFloat());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  frequencies = parser.getBuilder().getDenseF32ArrayAttr(values);
  return success();
}

/// Prints every digit that distinguishes a float, which the attribute's own
/// printer does not: printed IR must give the same machine code.
static void printFrequencies(OpAsmPrinter &printer, Operation *,
                             DenseF32ArrayAttr frequencies) {
  printer << "[";
  llvm::interleaveComma(frequencies.asArrayRef(), printer, [&](float value) {
    printer.printFloat(APFloat(value));
  });
  printer << "]";
}

#define GET_OP_CLASSES
#include "sandwich/Dialect/LM/IR/LMOps.cpp.inc"

void LMDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/LM/IR/LMTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/LM/IR/LMAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/LM/IR/LMOps.cpp.inc"
      >();
}

LogicalResult LMDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  if (attribute.getName() != phaseAttributeName)
    return op->emitError("unknown attribute '")
           << attribute.getName().getValue() << "'";
  if (!isa<FunctionOpInterface>(op) || !isa<PhaseAttr>(attribute.getValue()))
    return op->emitError("'lm.phase' is a #lm.phase on a function");
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult KVCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t layers, int64_t heads,
                                  int64_t headDim, Type elementType) {
  if (layers <= 0 || layers > maxLayers || heads <= 0 || heads > maxLayers ||
      headDim <= 0 || headDim > maxHeadDim)
    return emitError() << "(C1) layers and heads must be between 1 and "
                       << maxLayers << ", head_dim between 1 and "
                       << maxHeadDim;
  if (!elementType.isF32() && !elementType.isF16())
    return emitError() << "(C2) elements must be f32 or f16";
  return success();
}

MemRefType KVCacheType::getBufferType() const {
  return MemRefType::get({ShapedType::kDynamic, getLayers(), getHeads(), 2,
                          getHeadDim() * blockTokens},
                         getElementType());
}

//===----------------------------------------------------------------------===//
// Helpers of operations with a destination
//===----------------------------------------------------------------------===//

bool lm::hasChannels(Type type) {
  int64_t channels = cast<ShapedType>(type).getDimSize(1);
  return channels > 0 && channels <= maxDimension;
}

WeightOp lm::lookupWeight(Operation *user, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<WeightOp>(user, name);
}

LogicalResult lm::verifyForm(Operation *user, Value result, Value destination) {
  if (!result == !destination)
    return user->emitOpError(
        "(C1) needs a result (tensor form) or a destination (buffer form)");
  for (Value operand : user->getOperands())
    if (destination ? isa<TensorType, KVCacheType>(operand.getType())
                    : isa<BaseMemRefType>(operand.getType()))
      return user->emitOpError("(C1) mixes tensor form and buffer form");
  return success();
}

void lm::getBufferEffects(
    Operation *op, Value destination,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!isa<BaseMemRefType, KVCacheType>(type))
      continue;
    if (operand.get() == destination && isa<BaseMemRefType>(type))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

/// The weight of `op`, checked to exist and to be stacked if and only if a
/// layer is given.
static FailureOr<WeightOp> findWeight(Operation *op, FlatSymbolRefAttr name,
                                      bool hasLayer) {
  WeightOp weight = lookupWeight(op, name);
  if (!weight)
    return op->emitOpError("names no lm.weight: ") << name;
  if (weight.getLayers().has_value() != hasLayer)
    return op->emitOpError("must index a layer of ")
           << name << " if and only if it has layers";
  return weight;
}

static int64_t channels(Type type) {
  return cast<ShapedType>(type).getDimSize(1);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void WeightOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     RankedTensorType type, ArrayAttr sources,
                     std::optional<int64_t> layers) {
  build(builder, state, builder.getStringAttr(name), TypeAttr::get(type),
        layers ? builder.getI64IntegerAttr(*layers) : nullptr, sources,
        /*interleave=*/nullptr, /*packing=*/nullptr, /*offset=*/nullptr,
        /*layer_stride=*/nullptr);
}

LogicalResult WeightOp::verify() {
  RankedTensorType type = getTensorType();
  if (type.getRank() < 1 || type.getRank() > 2 || !type.hasStaticShape() ||
      llvm::any_of(type.getShape(), [](int64_t size) {
        return size <= 0 || size > maxDimension;
      }))
    return emitOpError("(C1) needs a type with one or two static dimensions "
                       "between 1 and ")
           << maxDimension;
  if (getSources().empty())
    return emitOpError("(C2) needs a source");
  int64_t layers = getLayersAttr() ? getLayersAttr().getInt() : 1;
  if (layers <= 0 || layers > maxLayers)
    return emitOpError("(C3) layers must be between 1 and ") << maxLayers;
  for (auto source : getSources().getAsRange<StringAttr>())
    if (source.getValue().contains("{}") != getLayers().has_value())
      return emitOpError("(C3) source ")
             << source << " must contain '{}' if and only if there are layers";
  if (IntegerAttr group = getInterleaveAttr())
    if (group.getInt() <= 0 || group.getInt() > maxInterleave ||
        type.getRank() != 2)
      return emitOpError("(C4) interleave must be between 1 and ")
             << maxInterleave << ", on two dimensions";
  constexpr int64_t maxElements = int64_t(1) << 48;
  // Two dimensions cannot overflow by (C1).
  std::optional<int64_t> elements =
      checkedMultiply(type.getNumElements(), layers);
  if (!elements || *elements >= maxElements)
    return emitOpError("(C5) all layers must have fewer than 2^48 elements");
  return success();
}

LogicalResult EmbedOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  FailureOr<WeightOp> weight = findWeight(*this, getWeightAttr(), false);
  if (failed(weight))
    return failure();
  RankedTensorType type = weight->getTensorType();
  if (type.getRank() != 2 ||
      type.getDimSize(1) != getDestinationType(*this).getDimSize(1))
    return emitOpError("(C2) weight and result differ in channels");
  return success();
}

LogicalResult RMSNormOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  FailureOr<WeightOp> weight =
      findWeight(*this, getWeightAttr(), static_cast<bool>(getLayer()));
  if (failed(weight))
    return failure();
  int64_t size = channels(getInput().getType());
  if (size != getDestinationType(*this).getDimSize(1))
    return emitOpError("(C2) input and result differ in channels");
  RankedTensorType type = weight->getTensorType();
  // The weight itself may not be verified yet.
  if (type.getRank() != 1 || !type.hasStaticShape() ||
      type.getDimSize(0) <= 0 || size % type.getDimSize(0) != 0)
    return emitOpError("(C3) channels must be a multiple of the weight's size");
  return success();
}

LogicalResult RotaryTableOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  ShapedType type = getDestinationType(*this);
  if (!type.getElementType().isF32() || getFrequencies().empty() ||
      type.getDimSize(1) != 2 * static_cast<int64_t>(getFrequencies().size()))
    return emitOpError(
        "(C2) result must be f32 with two channels for each frequency");
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  int64_t size = channels(getQuery().getType());
  if (size != getDestinationType(*this).getDimSize(1))
    return emitOpError("(C2) query and result differ in channels");
  int64_t width;
  if (auto cache = dyn_cast<KVCacheType>(getKvCache().getType())) {
    width = cache.getHeads() * cache.getHeadDim();
  } else {
    auto buffer = cast<MemRefType>(getKvCache().getType());
    int64_t layers = buffer.getDimSize(1), heads = buffer.getDimSize(2);
    int64_t headDim = buffer.getDimSize(4) / KVCacheType::blockTokens;
    if (buffer.getDimSize(3) != 2 ||
        buffer.getDimSize(4) % KVCacheType::blockTokens != 0 || layers <= 0 ||
        layers > maxLayers || heads <= 0 || heads > maxLayers || headDim <= 0 ||
        headDim > maxHeadDim)
      return emitOpError("(C4) cache buffer must have keys and values of 16 "
                         "tokens in each block, of at most ")
             << maxLayers << " layers and heads of " << maxHeadDim
             << " channels";
    width = heads * headDim;
  }
  if (size % width != 0)
    return emitOpError(
        "(C2) query channels must be a multiple of the cache's heads times "
        "head_dim");
  if (isa<KVCacheType>(getKvCache().getType()) ==
      static_cast<bool>(getBlockTables()))
    return emitOpError("(C3) block tables belong to the buffer form");
  return success();
}

LogicalResult GatherRowsOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  auto input = cast<ShapedType>(getInput().getType());
  ShapedType type = getDestinationType(*this);
  if (input.getDimSize(1) != type.getDimSize(1) ||
      input.getElementType() != type.getElementType())
    return emitOpError("(C2) input and result differ in more than rows");
  return success();
}

LogicalResult LinearOp::verify() {
  int64_t inputs = channels(getInput().getType());
  int64_t outputs = channels(getResult().getType());
  FailureOr<WeightOp> weight =
      findWeight(*this, getWeightAttr(), static_cast<bool>(getLayer()));
  if (failed(weight))
    return failure();
  if (weight->getTensorType().getShape() != ArrayRef{outputs, inputs})
    return emitOpError("(C1) weight must be ") << outputs << " x " << inputs;
  if (!getBiasAttr())
    return success();
  FailureOr<WeightOp> bias =
      findWeight(*this, getBiasAttr(), static_cast<bool>(getLayer()));
  if (failed(bias))
    return failure();
  if (bias->getTensorType().getShape() != ArrayRef{outputs})
    return emitOpError("(C2) bias must have ") << outputs << " elements";
  return success();
}

LogicalResult RotateOp::verify() {
  if (channels(getInput().getType()) % channels(getTable().getType()) != 0)
    return emitOpError("(C1) input channels must be a multiple of the table's");
  return success();
}

LogicalResult AppendKVOp::verify() {
  KVCacheType cache = getKvCache().getType();
  int64_t width = cache.getHeads() * cache.getHeadDim();
  if (channels(getKey().getType()) != width)
    return emitOpError("(C1) keys and values must have ")
           << width << " channels";
  return success();
}

void EmbedOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getDestination(), effects);
}
void RMSNormOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getDestination(), effects);
}
void RotaryTableOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getDestination(), effects);
}
void AttentionOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getDestination(), effects);
}
void GatherRowsOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getDestination(), effects);
}
