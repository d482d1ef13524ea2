//===- LMOps.cpp - Operations of lm ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/TensorParallelism.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

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

/// Reads the type of the result behind those of operands: `into` a
/// destination's, or `->` a result's, or nothing where that is the `input`'s.
static ParseResult parseResultType(OpAsmParser &parser, Type input,
                                   Type &destination, Type &result) {
  if (succeeded(parser.parseOptionalKeyword("into")))
    return parser.parseType(destination);
  if (succeeded(parser.parseOptionalArrow()))
    return parser.parseType(result);
  result = input;
  return success();
}

static void printResultType(OpAsmPrinter &printer, Operation *, Type input,
                            Type destination, Type result) {
  if (destination)
    printer << " into " << destination;
  else if (result != input)
    printer << " -> " << result;
}

/// Reads the types of two operands, one where they are the same, and of the
/// result.
static ParseResult parsePairTypes(OpAsmParser &parser, Type &first,
                                  Type &second, Type &destination,
                                  Type &result) {
  if (parser.parseType(first))
    return failure();
  second = first;
  if (succeeded(parser.parseOptionalComma()) && parser.parseType(second))
    return failure();
  return parseResultType(parser, first, destination, result);
}

static void printPairTypes(OpAsmPrinter &printer, Operation *op, Type first,
                           Type second, Type destination, Type result) {
  printer << first;
  if (second != first)
    printer << ", " << second;
  printResultType(printer, op, first, destination, result);
}

/// Reads the types of keys and values, one where they are the same, of the
/// cache and of the slots.
static ParseResult parseAppendTypes(OpAsmParser &parser, Type &key, Type &value,
                                    Type &cache, Type &slots) {
  SmallVector<Type> types;
  const SMLoc location = parser.getCurrentLocation();
  if (parser.parseTypeList(types))
    return failure();
  if (types.size() == 3)
    types.insert(types.begin(), types.front());
  if (types.size() != 4)
    return parser.emitError(location, "expected the types of keys, of values "
                                      "where it is another, of the cache and "
                                      "of slots");
  key = types[0];
  value = types[1];
  cache = types[2];
  slots = types[3];
  return success();
}

static void printAppendTypes(OpAsmPrinter &printer, Operation *, Type key,
                             Type value, Type cache, Type slots) {
  printer << key << ", ";
  if (value != key)
    printer << value << ", ";
  printer << cache << ", " << slots;
}

#include "sandwich/Dialect/LM/IR/LMOpInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/LM/IR/LMOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Helpers of operations
//===----------------------------------------------------------------------===//

bool lm::hasChannels(Type type) {
  int64_t channels = cast<ShapedType>(type).getDimSize(1);
  return channels > 0 && channels <= maxDimension;
}

WeightOp lm::lookupWeight(SymbolTableCollection &symbols, Operation *user,
                          FlatSymbolRefAttr name) {
  return symbols.lookupNearestSymbolFrom<WeightOp>(user, name);
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
    Operation *op, MutableOperandRange destination,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<BaseMemRefType, KVCacheType>(operand.get().getType()))
      continue;
    if (llvm::is_contained(llvm::make_pointer_range(destination), &operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

FailureOr<WeightOp> lm::verifyWeightUse(Operation *user,
                                        SymbolTableCollection &symbols,
                                        FlatSymbolRefAttr name,
                                        const WeightShape &use,
                                        StringRef constraint) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(user, name);
  if (weight &&
      succeeded(verifyCompatibleShape(weight.getTensorType().getShape(),
                                      use.shape)) &&
      weight.getLayers().has_value() == use.hasLayers &&
      weight.getInterleave().has_value() == use.interleaved)
    return weight;
  InFlightDiagnostic diagnostic = user->emitOpError(constraint);
  diagnostic << " " << name << " must be a weight of ";
  llvm::interleave(
      use.shape,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          diagnostic << "any number";
        else
          diagnostic << size;
      },
      [&] { diagnostic << " x "; });
  return diagnostic << " elements, " << (use.hasLayers ? "with" : "without")
                    << " layers, " << (use.interleaved ? "" : "not ")
                    << "interleaved";
}

bool lm::isPositive(const APFloat &value) {
  return value.isFinite() && !value.isZero() && !value.isNegative();
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
        /*interleave=*/nullptr, /*storage=*/nullptr, /*shard=*/nullptr,
        /*packing=*/nullptr,
        /*offset=*/nullptr, /*layer_stride=*/nullptr);
}

LogicalResult WeightOp::verify() {
  RankedTensorType type = getTensorType();
  if (type.getRank() < 1 || type.getRank() > 2 || !type.hasStaticShape() ||
      llvm::any_of(
          type.getShape(),
          [](int64_t size) { return size <= 0 || size > maxDimension; }) ||
      type.getEncoding())
    return emitOpError("(C1) needs a type with one or two static dimensions "
                       "between 1 and ")
           << maxDimension << " and no encoding";
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
        type.getRank() != 2 || type.getDimSize(0) % getSources().size() != 0)
      return emitOpError("(C4) interleave must be between 1 and ")
             << maxInterleave
             << ", on two dimensions, the first shared equally by the sources";
  constexpr int64_t maxElements = int64_t(1) << 48;
  // Two dimensions cannot overflow by (C1).
  std::optional<int64_t> elements =
      checkedMultiply(type.getNumElements(), layers);
  if (!elements || *elements >= maxElements)
    return emitOpError("(C5) all layers must have fewer than 2^48 elements");
  if (PackingAttrInterface packing = getPackingAttr())
    if (type.getRank() != 2 || type.getDimSize(1) % packing.getKStep() != 0)
      return emitOpError("(C6) does not fit its packing ") << packing;
  // No slice begins inside of a cache line.
  constexpr int64_t alignment = 64;
  if (IntegerAttr offset = getOffsetAttr())
    if (offset.getInt() < 0 || offset.getInt() % alignment != 0)
      return emitOpError("(C7) offset must be a multiple of ")
             << alignment << " and not negative";
  IntegerAttr stride = getLayerStrideAttr();
  if (static_cast<bool>(stride) != (getOffset() && getLayers()))
    return emitOpError(
        "(C8) stride belongs to a weight with an offset and layers");
  if (stride &&
      (stride.getInt() < getSliceBytes() || stride.getInt() % alignment != 0))
    return emitOpError("(C8) stride must be a multiple of ")
           << alignment << " and at least the " << getSliceBytes()
           << " bytes of a slice";
  if (ShardAttr shard = getShardAttr();
      shard && shard.getKind() == ShardKind::Columns && type.getRank() != 2)
    return emitOpError("(C9) only a weight with two dimensions has columns");
  if (StorageAttr storage = getStorageAttr()) {
    if (type.getRank() != 2 || !type.getElementType().isF32())
      return emitOpError("(C10) only a weight of f32 with two dimensions is "
                         "quantized");
    if (Status status =
            sandwich::verify(storage.getFormat(), type.getDimSize(1));
        !status)
      return emitOpError("(C10) ") << status.error().message;
    if (getOffset() && !getPackingAttr())
      return emitOpError("(C10) needs a packing to be stored as ") << storage;
  }
  return success();
}

StorageFormat lm::storageFormatOf(StorageAttr storage, Type type) {
  if (storage)
    return storage.getFormat();
  return type.isBF16() ? StorageFormat::bf16() : StorageFormat::f32();
}

StorageFormat WeightOp::getStorageFormat() {
  return storageFormatOf(getStorageAttr(), getTensorType().getElementType());
}

int64_t WeightOp::getStoredRows() {
  int64_t rows = getTensorType().getDimSize(0);
  std::optional<uint64_t> group = getInterleave();
  if (!group)
    return rows;
  // Each source is filled up to whole groups on its own.
  int64_t sources = getSources().size();
  return sources * llvm::alignTo(rows / sources, *group);
}

MemRefType WeightOp::getBufferType() {
  RankedTensorType type = getTensorType();
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = getStoredRows();
  if (PackingAttrInterface packing = getPackingAttr())
    return packing.getBufferType(shape[0], shape[1], getStorageFormat());
  return MemRefType::get(shape, type.getElementType());
}

int64_t WeightOp::getSliceBytes() {
  // (C1), (C4) and (C5) bound the elements, with those that fill up groups and
  // panels, to 2^60.
  MemRefType type = getBufferType();
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

void EmbedOp::build(OpBuilder &builder, OperationState &state, Type result,
                    Value indices, FlatSymbolRefAttr weight,
                    EmbeddedInput input, int64_t offset) {
  build(builder, state, result, indices, weight,
        EmbeddedInputAttr::get(builder.getContext(), input),
        builder.getI64IntegerAttr(offset), /*destination=*/Value());
}

LogicalResult EmbedOp::verify() {
  return verifyForm(*this, getResult(), getDestination());
}

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t size = getDestinationType(*this).getDimSize(1);
  FailureOr<WeightOp> weight = verifyWeightUse(
      *this, symbols, getWeightAttr(), {{ShapedType::kDynamic, size}}, "(C2)");
  if (failed(weight))
    return failure();
  const int64_t offset = getOffsetAttr().getInt();
  if (offset < 0 || offset >= weight->getTensorType().getDimSize(0) ||
      (offset != 0 && getInput() != EmbeddedInput::Positions))
    return emitOpError("(C3) offset must be between 0 and the weight's rows, "
                       "and 0 but for positions");
  return success();
}

/// The form, channels and epsilon of a normalization: constraints (C1), (C2)
/// and (C4).
template <typename Op> static LogicalResult verifyNorm(Op op) {
  if (failed(verifyForm(op, op.getResult(), op.getDestination())))
    return failure();
  if (channels(op.getInput().getType()) != getDestinationType(op).getDimSize(1))
    return op.emitOpError("(C2) input and result differ in channels");
  if (!isPositive(op.getEpsilon()))
    return op.emitOpError("(C4) epsilon must be finite and positive");
  return success();
}

LogicalResult RMSNormOp::verify() { return verifyNorm(*this); }

LogicalResult RMSNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<WeightOp> weight = verifyWeightUse(
      *this, symbols, getWeightAttr(),
      {{ShapedType::kDynamic}, static_cast<bool>(getLayer())}, "(C3)");
  if (failed(weight))
    return failure();
  if (channels(getInput().getType()) % weight->getTensorType().getDimSize(0) !=
      0)
    return emitOpError("(C3) channels must be a multiple of the weight's size");
  return success();
}

LogicalResult LayerNormOp::verify() { return verifyNorm(*this); }

LogicalResult LayerNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  const int64_t size = channels(getInput().getType());
  const bool hasLayers = static_cast<bool>(getLayer());
  for (FlatSymbolRefAttr name : {getWeightAttr(), getBiasAttr()})
    if (failed(
            verifyWeightUse(*this, symbols, name, {{size}, hasLayers}, "(C3)")))
      return failure();
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
  if (llvm::any_of(getFrequencies(), [](float frequency) {
        return !std::isfinite(frequency) || frequency < 0;
      }))
    return emitOpError("(C3) frequencies must be finite and not negative");
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  int64_t size = channels(getQuery().getType());
  if (size != getDestinationType(*this).getDimSize(1))
    return emitOpError("(C2) query and result differ in channels");
  KVCacheType cache = getKVCacheType(getKvCache().getType());
  if (!cache)
    return emitOpError("(C3) ")
           << getKvCache().getType() << " is not the buffer of a !lm.kv_cache";
  if (size % (cache.getHeads() * cache.getHeadDim()) != 0)
    return emitOpError(
        "(C2) query channels must be a multiple of the cache's heads times "
        "head_dim");
  if (!isPositive(getScale()))
    return emitOpError("(C4) scale must be finite and positive");
  if (!getSchedules())
    return success();
  for (const AttentionTableEntry &entry : getSchedules()->getTable()) {
    if (Status status = sandwich::verify(entry.schedule, getShape()); !status)
      return emitOpError("(C5) ") << status.error().message;
    if (getDestination() && entry.schedule.split > 1 && !getPartialSums())
      return emitOpError("(C6) a schedule that splits contexts needs partial "
                         "sums");
  }
  return success();
}

/// The parts of contexts that a step of at most `maxTokens` tokens can have.
static int64_t countParts(const AttentionTableEntry &entry, int64_t maxTokens) {
  return entry.schedule.split == 1
             ? 0
             : std::min(entry.maxSegments, maxTokens) * entry.schedule.split;
}

int64_t AttentionOp::getPartialSumsBytes(int64_t maxRows,
                                         SymbolTableCollection &) {
  if (!getSchedules())
    return 0;
  int64_t parts = 0;
  for (const AttentionTableEntry &entry : getSchedules()->getTable())
    parts = std::max(parts, countParts(entry, maxRows));
  // A sum for each channel, the largest score and the sum of exponentials. At
  // most 2^16 tokens in 2^10 parts and 2^31 channels: no overflow.
  int64_t size = channels(getQuery().getType());
  int64_t heads = getShape().cacheHeads * getShape().group;
  return parts * (size + 2 * heads) * static_cast<int64_t>(sizeof(float));
}

AttentionElement lm::attentionElementOf(Type type) {
  if (type.isF32())
    return AttentionElement::F32;
  if (type.isInteger(8))
    return AttentionElement::Int8;
  return type.isBF16() ? AttentionElement::BF16 : AttentionElement::F16;
}

Type lm::getType(AttentionElement element, MLIRContext *context) {
  switch (element) {
  case AttentionElement::F32:
    return Float32Type::get(context);
  case AttentionElement::BF16:
    return BFloat16Type::get(context);
  case AttentionElement::F16:
    return Float16Type::get(context);
  case AttentionElement::Int8:
    return IntegerType::get(context, 8);
  }
  llvm_unreachable("an unknown element");
}

AttentionShape AttentionOp::getShape() {
  KVCacheType cache = getKVCacheType(getKvCache().getType());
  int64_t heads = channels(getQuery().getType()) / cache.getHeadDim();
  return {.cacheHeads = cache.getHeads(),
          .group = heads / cache.getHeads(),
          .headDim = cache.getHeadDim(),
          .cache = attentionElementOf(cache.getElementType()),
          .query = attentionElementOf(getElementTypeOrSelf(getQuery())),
          .result =
              attentionElementOf(getDestinationType(*this).getElementType())};
}

/// Whether `op` has one of its forms, in which the result has the channels, and
/// with `sameElements` the elements, of `operands`: constraints (C1) and (C2).
template <typename Op>
static LogicalResult verifyElementwise(Op op, ValueRange operands,
                                       bool sameElements) {
  if (failed(verifyForm(op, op.getResult(), op.getDestination())))
    return failure();
  ShapedType type = getDestinationType(op);
  for (Value operand : operands)
    if (channels(operand.getType()) != type.getDimSize(1) ||
        (sameElements &&
         getElementTypeOrSelf(operand) != type.getElementType()))
      return op.emitOpError("(C2) operands and result differ in ")
             << (sameElements ? "channels or elements" : "channels");
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

/// Whether `type` is f32 with `count` channels.
static bool hasF32Channels(ShapedType type, int64_t count) {
  return type.getElementType().isF32() && type.getDimSize(1) == count;
}

/// Whether the rows of `type` follow each other without gaps, as those of a
/// tensor do.
static bool isDense(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  return !buffer || buffer.getLayout().isIdentity();
}

LogicalResult PoolOp::verify() {
  return verifyElementwise(*this, getInput(), /*sameElements=*/false);
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  ShapedType type = getDestinationType(*this);
  if (!type.getElementType().isF32() ||
      !hasF32Channels(cast<ShapedType>(getInput().getType()),
                      type.getDimSize(1)))
    return emitOpError("(C2) input and result must be f32 with the same number "
                       "of channels");
  if (getDestination() &&
      (getDestination() != getInput() || !isDense(getInput().getType())))
    return emitOpError("(C3) the destination must be the input, without gaps "
                       "between its rows");
  return success();
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyForm(*this, getResult(), getDestination())))
    return failure();
  auto input = cast<ShapedType>(getInput().getType());
  ShapedType type = getDestinationType(*this);
  if (!input.getElementType().isF32() || !type.getElementType().isF32() ||
      type.getDimSize(1) % input.getDimSize(1) != 0 ||
      !canShareModel(getRanks()))
    return emitOpError("(C2) input and result must be f32, the result with 2 "
                       "to ")
           << maxTensorParallelRanks << " times the input's channels";
  if (!isDense(input) || !isDense(type))
    return emitOpError("(C3) rows must follow each other without gaps");
  return success();
}

int64_t AllGatherOp::getRanks() {
  return getDestinationType(*this).getDimSize(1) /
         channels(getInput().getType());
}

FailureOr<int64_t> lm::getRanks(ModuleOp module) {
  int64_t ranks = 1;
  for (auto weight : module.getOps<WeightOp>()) {
    ShardAttr shard = weight.getShardAttr();
    if (!shard || shard.getRanks() == ranks)
      continue;
    if (ranks != 1)
      return weight.emitOpError("is a shard of ")
             << shard.getRanks() << " ranks, others are of " << ranks;
    ranks = shard.getRanks();
  }
  WalkResult result = module.walk([&](Operation *op) {
    auto gather = dyn_cast<AllGatherOp>(op);
    auto deal = dyn_cast<DealRowsOp>(op);
    if ((isa<AllReduceOp>(op) && ranks == 1) ||
        (gather && gather.getRanks() != ranks) ||
        (deal && static_cast<int64_t>(deal.getRanks()) != ranks)) {
      op->emitOpError("does not fit weights that are divided among ")
          << ranks << (ranks == 1 ? " rank" : " ranks");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return ranks;
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t inputs = channels(getInput().getType());
  int64_t outputs = channels(getResult().getType());
  bool hasLayers = static_cast<bool>(getLayer());
  if (failed(verifyWeightUse(*this, symbols, getWeightAttr(),
                             {{outputs, inputs}, hasLayers}, "(C1)")))
    return failure();
  if (!getBiasAttr())
    return success();
  return verifyWeightUse(*this, symbols, getBiasAttr(), {{outputs}, hasLayers},
                         "(C2)");
}

LogicalResult RotateOp::verify() {
  if (failed(verifyElementwise(*this, getInput(), /*sameElements=*/true)))
    return failure();
  int64_t headDim = channels(getTable().getType());
  if (headDim % 2 != 0)
    return emitOpError("(C3) table must have an even number of channels");
  if (channels(getInput().getType()) % headDim != 0)
    return emitOpError("(C3) input channels must be a multiple of the table's");
  return success();
}

LogicalResult SiluMulOp::verify() {
  return verifyElementwise(*this, {getGate(), getUp()},
                           /*sameElements=*/false);
}

LogicalResult GeluOp::verify() {
  return verifyElementwise(*this, getInput(), /*sameElements=*/false);
}

LogicalResult L2NormalizeOp::verify() {
  return verifyElementwise(*this, getInput(), /*sameElements=*/false);
}

LogicalResult TanhOp::verify() {
  return verifyElementwise(*this, getInput(), /*sameElements=*/false);
}

LogicalResult AddOp::verify() {
  return verifyElementwise(*this, {getLhs(), getRhs()},
                           /*sameElements=*/false);
}

LogicalResult RoundOp::verify() {
  if (failed(verifyElementwise(*this, getInput(), /*sameElements=*/false)))
    return failure();
  if (!getElementTypeOrSelf(getInput()).isF32() ||
      !getDestinationType(*this).getElementType().isBF16())
    return emitOpError("(C3) rounds f32 to bf16");
  return success();
}

LogicalResult DealRowsOp::verify() {
  if (failed(verifyElementwise(*this, getInput(), /*sameElements=*/true)))
    return failure();
  if (!canShareModel(static_cast<int64_t>(getRanks())))
    return emitOpError("(C3) ranks must be between 2 and ")
           << maxTensorParallelRanks;
  return success();
}

LogicalResult AppendKVOp::verify() {
  KVCacheType cache = getKVCacheType(getKvCache().getType());
  if (!cache)
    return emitOpError("(C2) ")
           << getKvCache().getType() << " is not the buffer of a !lm.kv_cache";
  int64_t width = cache.getHeads() * cache.getHeadDim();
  if (channels(getKey().getType()) != width ||
      channels(getValue().getType()) != width)
    return emitOpError("(C1) keys and values must have ")
           << width << " channels";
  auto isBuffer = llvm::IsaPred<BaseMemRefType>;
  const bool inBuffers = isBuffer(getKey().getType());
  for (Value operand : {getValue(), getKvCache(), getSlots()})
    if (isBuffer(operand.getType()) != inBuffers)
      return emitOpError("(C3) mixes tensor form and buffer form");
  return success();
}

//===----------------------------------------------------------------------===//
// What they tell of themselves
//===----------------------------------------------------------------------===//

SmallVector<PhaseInputUse> EmbedOp::getPhaseInputs() {
  switch (getInput()) {
  case EmbeddedInput::TokenIds:
    return {{getIndices(), PhaseInput::TokenIds}};
  case EmbeddedInput::TokenTypes:
    return {{getIndices(), PhaseInput::TokenTypes}};
  case EmbeddedInput::Positions:
    return {{getIndices(), PhaseInput::Positions}};
  }
  llvm_unreachable("every input is handled");
}
bool EmbedOp::splitsRows() { return true; }
SmallVector<WeightUse> EmbedOp::getWeightUses() {
  return {{getWeightAttr(), WeightRole::Table}};
}

/// The result of `op`, in either form.
template <typename Op> static KernelArgument resultOfKernel(Op op) {
  KernelArgument result{"result", getDestinationType(op).getElementType()};
  result.isActivation = true;
  result.rows = op.getDestination();
  return result;
}
static KernelArgument rowsOfKernel(StringRef name, Value rows) {
  KernelArgument argument{name, getElementTypeOrSelf(rows)};
  argument.isActivation = true;
  argument.rows = rows;
  return argument;
}
static KernelArgument vectorOfKernel(StringRef name, FlatSymbolRefAttr vector) {
  KernelArgument argument{name};
  argument.vector = vector;
  return argument;
}
static KernelArgument numberOfKernel(StringRef name, FloatAttr number) {
  KernelArgument argument{name, number.getType()};
  argument.number = number;
  return argument;
}

SmallVector<KernelArgument> RMSNormOp::getKernelArguments() {
  return {rowsOfKernel("input", getInput()),
          vectorOfKernel("weight", getWeightAttr()),
          numberOfKernel("epsilon", getEpsilonAttr()), resultOfKernel(*this)};
}

SmallVector<KernelArgument> LayerNormOp::getKernelArguments() {
  return {rowsOfKernel("input", getInput()),
          vectorOfKernel("weight", getWeightAttr()),
          vectorOfKernel("bias", getBiasAttr()),
          numberOfKernel("epsilon", getEpsilonAttr()), resultOfKernel(*this)};
}

SmallVector<KernelArgument> L2NormalizeOp::getKernelArguments() {
  return {rowsOfKernel("input", getInput()), resultOfKernel(*this)};
}

SmallVector<KernelArgument> AddOp::getKernelArguments() {
  return {rowsOfKernel("lhs", getLhs()), rowsOfKernel("rhs", getRhs()),
          resultOfKernel(*this)};
}

SmallVector<KernelArgument> SiluMulOp::getKernelArguments() {
  return {rowsOfKernel("gate", getGate()), rowsOfKernel("up", getUp()),
          resultOfKernel(*this)};
}

SmallVector<KernelArgument> GeluOp::getKernelArguments() {
  return {rowsOfKernel("input", getInput()), resultOfKernel(*this)};
}
SmallVector<KernelConstant> GeluOp::getKernelConstants() {
  return {{"EXACT", getKind() == GeluKind::Exact}};
}

SmallVector<KernelArgument> TanhOp::getKernelArguments() {
  return {rowsOfKernel("input", getInput()), resultOfKernel(*this)};
}

SmallVector<KernelArgument> RoundOp::getKernelArguments() {
  return {rowsOfKernel("input", getInput()), resultOfKernel(*this)};
}

SmallVector<KernelArgument> RotateOp::getKernelArguments() {
  const int64_t headDim = channels(getTable().getType());
  const int64_t heads = channels(getInput().getType()) / headDim;
  SmallVector<KernelArgument> arguments = {rowsOfKernel("input", getInput()),
                                           rowsOfKernel("table", getTable()),
                                           resultOfKernel(*this)};
  for (size_t number : {0, 2})
    arguments[number].extents = {"rows", heads, headDim};
  arguments[1].extents = {"rows", headDim};
  return arguments;
}

SmallVector<KernelArgument> SamplingOp::getKernelArguments() {
  const auto vocabulary = static_cast<int64_t>(getVocabulary());
  Builder b(getContext());
  const auto number = [](StringRef name, Type type, double usual) {
    KernelArgument argument{name, type};
    argument.usual = usual;
    return argument;
  };
  // Many of those who serve models have their options so.
  return {{"logits", b.getF32Type(), {vocabulary}},
          number("temperature", b.getF32Type(), 0.7),
          number("top-k", b.getI32Type(), 20),
          number("top-p", b.getF32Type(), 0.8),
          number("min-p", b.getF32Type(), 0),
          number("place", b.getF64Type(), 0.5),
          {"weights", b.getF32Type(), {vocabulary}},
          {"token", b.getI32Type(), {1}}};
}

LogicalResult SamplingOp::verify() {
  const int64_t vocabulary = getVocabularyAttr().getInt();
  if (vocabulary < 1 || vocabulary > maxDimension)
    return emitOpError("(C1) needs a vocabulary between 1 and ")
           << maxDimension << ", not " << vocabulary;
  return success();
}

SmallVector<KernelArgument> AttentionOp::getKernelArguments() {
  const AttentionShape shape = getShape();
  const KVCacheType cache = getKVCacheType(getKvCache().getType());
  const int64_t together = cache.getKeyChannelsTogether();
  const int64_t pairs = shape.headDim / together;
  constexpr int64_t block = KVCacheType::blockTokens;
  const int64_t scales = cache.hasScales() ? block : 0;
  Builder b(getContext());
  Type f32 = b.getF32Type(), element = cache.getElementType();
  return {
      {"query",
       getElementTypeOrSelf(getQuery()),
       {"tokens", "heads", shape.group, shape.headDim}},
      {"keys", element, {"cache blocks", "heads", pairs, together, block}},
      {"values", element, {"cache blocks", "heads", block, together, pairs}},
      {"scales of keys", f32, {"cache blocks", "heads", scales}},
      {"scales of values", f32, {"cache blocks", "heads", scales}},
      {"blocks", b.getI32Type(), {"blocks"}},
      {"positions", b.getIndexType()},
      {"scale", f32},
      {"result",
       getDestinationType(*this).getElementType(),
       {"tokens", "heads", shape.group, shape.headDim}},
      {"partial results", f32, {"tokens", "heads", shape.group, 0}},
  };
}
SmallVector<KernelConstant> AttentionOp::getKernelConstants() {
  // As for one token: calls for several have other numbers.
  const AttentionShape shape = getShape();
  return {{"CAUSAL", !getBidirectional()},
          {"HEADS", shape.cacheHeads},
          {"TOKENS", 1},
          {"QUERIES", shape.group},
          {"STREAMS", 1}};
}

bool RMSNormOp::splitsRows() { return true; }
bool RMSNormOp::canNarrowResult() { return true; }
SmallVector<WeightUse> RMSNormOp::getWeightUses() {
  return {{getWeightAttr(), WeightRole::Vector}};
}

bool LayerNormOp::splitsRows() { return true; }
Value LayerNormOp::getOverwritten() { return getInput(); }
bool LayerNormOp::canNarrowResult() { return true; }
SmallVector<WeightUse> LayerNormOp::getWeightUses() {
  return {{getWeightAttr(), WeightRole::Vector},
          {getBiasAttr(), WeightRole::Vector}};
}

SmallVector<PhaseInputUse> RotaryTableOp::getPhaseInputs() {
  return {{getPositions(), PhaseInput::Positions}};
}
bool RotaryTableOp::splitsRows() { return true; }

SmallVector<PhaseInputUse> AttentionOp::getPhaseInputs() {
  return {{getKvCache(), PhaseInput::KVCache},
          {getSegments(), PhaseInput::Segments},
          {getBlockTables(), PhaseInput::BlockTables}};
}
bool AttentionOp::canNarrowResult() { return true; }
StepCost AttentionOp::getCost(SymbolTableCollection &) {
  KVCacheType cache = getKVCacheType(getKvCache().getType());
  StepCost cost;
  // A multiplication and an addition for a score, and for a weighted value.
  cost.flopsPerAttended = 4 * channels(getQuery().getType());
  cost.bytesPerPosition = 2 * cache.getHeads() * cache.getHeadDim() *
                          cache.getElementType().getIntOrFloatBitWidth() / 8;
  return cost;
}

SmallVector<PhaseInputUse> GatherRowsOp::getPhaseInputs() {
  return {{getRows(), PhaseInput::LogitRows}};
}
std::optional<RowKind> GatherRowsOp::getResultRows() {
  return RowKind::LogitRows;
}

SmallVector<PhaseInputUse> PoolOp::getPhaseInputs() {
  return {{getSegments(), PhaseInput::Segments}};
}
std::optional<RowKind> PoolOp::getResultRows() { return RowKind::LogitRows; }
bool PoolOp::canNarrowResult() { return true; }

Value AllReduceOp::getOverwritten() { return getInput(); }

bool RotateOp::splitsRows() { return true; }
Value RotateOp::getOverwritten() { return getInput(); }

bool SiluMulOp::splitsRows() { return true; }
Value SiluMulOp::getOverwritten() { return getGate(); }
bool SiluMulOp::canNarrowResult() { return true; }

bool GeluOp::splitsRows() { return true; }
Value GeluOp::getOverwritten() { return getInput(); }
bool GeluOp::canNarrowResult() { return true; }

bool L2NormalizeOp::splitsRows() { return true; }
Value L2NormalizeOp::getOverwritten() { return getInput(); }
bool L2NormalizeOp::canNarrowResult() { return true; }

bool TanhOp::splitsRows() { return true; }
Value TanhOp::getOverwritten() { return getInput(); }
bool TanhOp::canNarrowResult() { return true; }

bool AddOp::splitsRows() { return true; }
Value AddOp::getOverwritten() { return getLhs(); }
bool AddOp::canNarrowResult() { return true; }

bool RoundOp::splitsRows() { return true; }

bool DealRowsOp::splitsRows() { return true; }
Value DealRowsOp::getOverwritten() { return getInput(); }

bool AppendKVOp::splitsRows() { return true; }

SmallVector<PhaseInputUse> AppendKVOp::getPhaseInputs() {
  return {{getKvCache(), PhaseInput::KVCache},
          {getSlots(), PhaseInput::CacheSlots}};
}

SmallVector<WeightUse> LinearOp::getWeightUses() {
  SmallVector<WeightUse> uses = {{getWeightAttr(), WeightRole::Matrix}};
  if (getBiasAttr())
    uses.push_back({getBiasAttr(), WeightRole::Bias});
  return uses;
}
StepCost LinearOp::getCost(SymbolTableCollection &symbols) {
  return getMatmulCost(lookupWeight(symbols, *this, getWeightAttr()));
}

StepCost lm::getMatmulCost(WeightOp weight) {
  StepCost cost;
  cost.bytes = weight.getSliceBytes();
  cost.flopsPerRow = 2 * weight.getTensorType().getNumElements();
  return cost;
}

//===----------------------------------------------------------------------===//
// Memory effects
//===----------------------------------------------------------------------===//

void AttentionOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getDestinationMutable(), effects);
  for (OpOperand &sums : getPartialSumsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &sums);
}
void AppendKVOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getBufferEffects(*this, getKvCacheMutable(), effects);
}
