//===- GemmOps.cpp - Operations of gemm -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Support/TensorParallelism.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

#define GET_OP_CLASSES
#include "sandwich/Dialect/Gemm/IR/GemmOps.cpp.inc"

static int64_t channels(Value value) {
  return cast<ShapedType>(value.getType()).getDimSize(1);
}

int64_t gemm::getHeadDim(MatmulOp op) { return channels(op.getRotaryTable()); }

int64_t gemm::getHeadDim(EpilogueOp op) {
  return channels(op.getRotaryTable());
}

int64_t gemm::getPartialSumsColumns(MatmulOp op, const Schedule &schedule,
                                    SymbolTableCollection &symbols) {
  Packing packing = packingFor(getShape(op, symbols), schedule.microKernel.isa);
  lm::WeightOp weight = lm::lookupWeight(symbols, op, op.getWeightAttr());
  return llvm::alignTo(llvm::alignTo(weight.getStoredRows(), packing.panel),
                       vectorWidth);
}

int64_t MatmulOp::getPartialSumsBytes(int64_t maxRows,
                                      SymbolTableCollection &symbols) {
  // Epilogues read whole vectors that may begin at the last sum.
  constexpr int64_t paddingBytes = 64;
  if (!getSchedules())
    return 0;
  if (std::optional<ArrayRef<int64_t>> between = getTokensBetween())
    maxRows = std::min(maxRows, (*between)[1]);
  int64_t bytes = 0, minRows = 1;
  for (auto [served, attribute] : llvm::zip_equal(
           getSchedules()->getMaxRows(), getSchedules()->getSchedules())) {
    const Schedule &schedule = attribute.getSchedule();
    int64_t rows = std::min(served, maxRows);
    // At most 2^10 threads, 2^16 rows and 2^31 columns: no overflow.
    if (schedule.threads[2] > 1 && rows >= minRows)
      bytes = std::max(
          bytes, schedule.threads[2] * rows *
                         getPartialSumsColumns(*this, schedule, symbols) * 4 +
                     paddingBytes);
    if (served >= maxRows)
      break;
    minRows = served + 1;
  }
  return bytes;
}

SmallVector<lm::PhaseInputUse> MatmulOp::getPhaseInputs() {
  if (!getKvCache())
    return {};
  return {{getKvCache(), lm::PhaseInput::KVCache},
          {getSlots(), lm::PhaseInput::CacheSlots}};
}

SmallVector<lm::WeightUse> MatmulOp::getWeightUses() {
  SmallVector<lm::WeightUse> uses = {{getWeightAttr(), lm::WeightRole::Matrix}};
  if (getBiasAttr())
    uses.push_back({getBiasAttr(), lm::WeightRole::Bias});
  for (FlatSymbolRefAttr norm : {getQueryNormAttr(), getKeyNormAttr()})
    if (norm)
      uses.push_back({norm, lm::WeightRole::Vector});
  return uses;
}

/// The residual is added where it lies, unless that is read for other channels
/// as well.
Value MatmulOp::getOverwritten() {
  return getResidual() == getInput() ? Value() : getResidual();
}

bool MatmulOp::canNarrowResult() { return true; }

lm::StepCost MatmulOp::getCost(SymbolTableCollection &symbols) {
  return lm::getMatmulCost(lm::lookupWeight(symbols, *this, getWeightAttr()));
}

/// Whether matmuls alone read the result of `op`. In buffer form its element
/// says what they read.
static bool feedsMatmuls(MatmulOp op) {
  if (op.getDestination())
    return cast<MemRefType>(op.getDestination().getType())
        .getElementType()
        .isBF16();
  return !op.getResult().use_empty() &&
         llvm::all_of(op.getResult().getUses(), [](OpOperand &use) {
           auto reader = dyn_cast<MatmulOp>(use.getOwner());
           return reader && &use == &reader.getInputMutable();
         });
}

/// Whether rows of the result of `op` have no gap between them: those that are
/// returned are the caller's, and ranks exchange whole buffers.
static bool hasContiguousResult(MatmulOp op) {
  if (op.getDestination())
    return cast<MemRefType>(op.getDestination().getType())
        .getLayout()
        .isIdentity();
  return llvm::any_of(
      op.getResult().getUsers(),
      llvm::IsaPred<func::ReturnOp, lm::AllReduceOp, lm::AllGatherOp>);
}

/// Whether matmuls by `isa` have inputs of `type`: what is rounded to integers
/// may be either.
static bool readsInput(MatrixISA isa, Type type) {
  return multipliesIntegers(isa) || multipliesBF16(isa) == type.isBF16();
}

MatmulShape gemm::getShape(MatmulOp op, SymbolTableCollection &symbols) {
  lm::WeightOp weight = lm::lookupWeight(symbols, op, op.getWeightAttr());
  RankedTensorType type = weight.getTensorType();
  MatmulShape shape{.n = type.getDimSize(0), .k = type.getDimSize(1)};
  shape.storage = weight.getStorageFormat();
  shape.deterministic = lm::isDeterministic(op);
  if (auto packing = dyn_cast_or_null<PackingAttr>(weight.getPackingAttr()))
    shape.packing = packing.getPacking();
  if (op.getEpilogue() == Epilogue::RotateAppendKV)
    shape.columnUnit = getHeadDim(op);
  if (op.getEpilogue() == Epilogue::SiluMul)
    shape.columnUnit = 2 * *weight.getInterleave();
  shape.epilogue = {
      .kind = op.getEpilogue(),
      .bias = op.getBias().has_value(),
      .feedsMatmuls = feedsMatmuls(op),
      .contiguousResult = hasContiguousResult(op),
      .headNorms = op.getQueryNorm().has_value(),
  };
  if (op.getKvCache()) {
    lm::KVCacheType cache = lm::getKVCacheType(op.getKvCache().getType());
    shape.epilogue.cacheHeads = cache.getHeads();
    shape.epilogue.cache = lm::attentionElementOf(cache.getElementType());
  }
  return shape;
}

MatmulShape gemm::getShape(MatmulOp op, SymbolTableCollection &symbols,
                           StringRef activations) {
  MatmulShape shape = getShape(op, symbols);
  shape.roundsInput = activations == "int8" && shape.storage.hasIntegers();
  return shape;
}

ScheduleTableAttr gemm::getTableAttr(MLIRContext *context,
                                     const ScheduleTable &table) {
  SmallVector<int64_t> maxRows;
  SmallVector<ScheduleAttr> schedules;
  for (const ScheduleTableEntry &entry : table) {
    maxRows.push_back(entry.maxRows);
    schedules.push_back(ScheduleAttr::get(context, entry.schedule));
  }
  return ScheduleTableAttr::get(context, maxRows, schedules);
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Type result,
                     Value input, FlatSymbolRefAttr weight) {
  build(builder, state, result, input, weight, /*bias=*/nullptr,
        /*layer=*/nullptr,
        EpilogueAttr::get(builder.getContext(), Epilogue::None),
        /*residual=*/nullptr, /*residual_ranks=*/nullptr,
        /*rotary_table=*/nullptr, /*kv_cache=*/nullptr,
        /*slots=*/nullptr, /*query_norm=*/nullptr, /*key_norm=*/nullptr,
        /*norm_epsilon=*/nullptr, /*schedules=*/nullptr,
        /*tokens_between=*/nullptr, /*partial_sums=*/nullptr,
        /*parameters=*/nullptr, /*destination=*/nullptr);
}

/// The channels of the heads of a `rotate_append_kv` epilogue that writes
/// `result` channels.
template <typename Op> static LogicalResult verifyHeads(Op op, int64_t result) {
  lm::KVCacheType cache = lm::getKVCacheType(op.getKvCache().getType());
  if (!cache)
    return op.emitOpError("(C4) ") << op.getKvCache().getType()
                                   << " is not the buffer of a !lm.kv_cache";
  int64_t headDim = getHeadDim(op);
  if (headDim != cache.getHeadDim() || headDim % 2 != 0)
    return op.emitOpError("(C4) table must have the channels of a head of the "
                          "cache, an even number, got ")
           << headDim << " and " << cache.getHeadDim();
  if (result % headDim != 0)
    return op.emitOpError("(C4) result must be whole heads of ")
           << headDim << " channels";
  if (op.getNormEpsilon() && !lm::isPositive(*op.getNormEpsilon()))
    return op.emitOpError("(C5) epsilon must be finite and positive");
  return success();
}

/// Whether `op`, a matmul or an epilogue of one, has what its epilogue takes,
/// and nothing else.
template <typename Op> static bool hasEpilogueOperands(Op op) {
  Epilogue epilogue = op.getEpilogue();
  bool rotates = epilogue == Epilogue::RotateAppendKV;
  return static_cast<bool>(op.getResidual()) ==
             (epilogue == Epilogue::AddResidual) &&
         (op.getResidual() || !op.getResidualRanks()) &&
         static_cast<bool>(op.getRotaryTable()) == rotates &&
         static_cast<bool>(op.getKvCache()) == rotates &&
         static_cast<bool>(op.getSlots()) == rotates &&
         (rotates || !op.getQueryNorm()) &&
         op.getQueryNorm().has_value() == op.getKeyNorm().has_value() &&
         op.getQueryNorm().has_value() == op.getNormEpsilon().has_value();
}

/// What `op`, a matmul or an epilogue of one, needs to write `result` channels.
template <typename Op>
static LogicalResult verifyEpilogue(Op op, int64_t result) {
  if (!hasEpilogueOperands(op))
    return op.emitOpError("(C3) has operands that epilogue '")
           << name(op.getEpilogue()) << "' does not take, or lacks one";
  if (op.getResidual() && channels(op.getResidual()) != result)
    return op.emitOpError("(C4) residual must have ") << result << " channels";
  auto ranks = static_cast<int64_t>(op.getResidualRanks().value_or(2));
  if (ranks < 2 || ranks > maxTensorParallelRanks)
    return op.emitOpError("(C3) a residual is dealt among 2 to ")
           << maxTensorParallelRanks << " ranks";
  return op.getEpilogue() == Epilogue::RotateAppendKV ? verifyHeads(op, result)
                                                      : success();
}

LogicalResult MatmulOp::verify() {
  if (failed(lm::verifyForm(*this, getResult(), getDestination())))
    return failure();
  bool inBuffers = static_cast<bool>(getDestination());
  if (std::optional<ArrayRef<int64_t>> tokens = getTokensBetween();
      tokens && (!inBuffers || tokens->size() != 2 || (*tokens)[0] < 0 ||
                 (*tokens)[0] > (*tokens)[1]))
    return emitOpError("(C7) tokens_between needs two numbers, ascending, in "
                       "buffer form");
  if (getParameters()) {
    ArrayRef<ScheduleAttr> schedules = getSchedules()
                                           ? getSchedules()->getSchedules()
                                           : ArrayRef<ScheduleAttr>();
    if (schedules.size() != 1 ||
        schedules.front().getSchedule().threads[0] != 1 ||
        schedules.front().getSchedule().threads[1] != 1)
      return emitOpError("(C8) parameters need one schedule, whose thread "
                         "grid divides nothing but K");
  }
  return verifyEpilogue(*this, lm::getDestinationType(*this).getDimSize(1));
}

/// The rows of the weight from which `op` makes `result` channels.
template <typename Op> static int64_t getNeededRows(Op op, int64_t result) {
  switch (op.getEpilogue()) {
  case Epilogue::None:
  case Epilogue::AddResidual:
  case Epilogue::GeluExact:
  case Epilogue::GeluTanh:
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

/// The bias for `rows` rows and the norms of a matmul or an epilogue of one.
template <typename Op>
static LogicalResult verifyVectors(Op op, SymbolTableCollection &symbols,
                                   int64_t rows) {
  bool hasLayers = static_cast<bool>(op.getLayer());
  auto verifyVector = [&](FlatSymbolRefAttr name, int64_t size) {
    return success(!name ||
                   succeeded(lm::verifyWeightUse(op, symbols, name,
                                                 {{size}, hasLayers}, "(C5)")));
  };
  if (failed(verifyVector(op.getBiasAttr(), rows)))
    return failure();
  if (!op.getQueryNorm())
    return success();
  int64_t headDim = getHeadDim(op);
  return success(succeeded(verifyVector(op.getQueryNormAttr(), headDim)) &&
                 succeeded(verifyVector(op.getKeyNormAttr(), headDim)));
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
  int64_t needed =
      getNeededRows(*this, lm::getDestinationType(*this).getDimSize(1));
  if (rows != needed)
    return emitOpError("(C4) ") << getWeightAttr() << " must have " << needed
                                << " rows for this result";
  if (failed(verifyVectors(*this, symbols, rows)))
    return failure();

  if (!getSchedules())
    return success();
  MatmulShape shape = getShape(*this, symbols);
  Type inputType = cast<ShapedType>(getInput().getType()).getElementType();
  for (ScheduleAttr schedule : getSchedules()->getSchedules()) {
    const MicroKernel &kernel = schedule.getSchedule().microKernel;
    if (Status status = sandwich::verify(schedule.getSchedule(), shape);
        !status)
      return emitOpError("(C6) ") << status.error().message;
    if (!readsInput(kernel.isa, inputType))
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
  if (getPartialSums())
    effects.emplace_back(MemoryEffects::Write::get(),
                         &getPartialSumsMutable()[0]);
}

//===----------------------------------------------------------------------===//
// Epilogue
//===----------------------------------------------------------------------===//

void EpilogueOp::build(OpBuilder &builder, OperationState &state,
                       MatmulOp matmul, Value sums, ValueRange place,
                       SymbolTableCollection &symbols) {
  IntegerAttr interleave;
  if (matmul.getEpilogue() == Epilogue::SiluMul)
    interleave = builder.getI64IntegerAttr(
        *lm::lookupWeight(symbols, matmul, matmul.getWeightAttr())
             .getInterleave());
  // One that is being lowered has one schedule left.
  ArrayRef<ScheduleAttr> schedules = matmul.getSchedules()->getSchedules();
  // The matrix was looked up: only these of the epilogue have layers.
  Value layer;
  if (matmul.getBias() || matmul.getQueryNorm() || matmul.getKvCache())
    layer = matmul.getLayer();
  UnitAttr nonTemporal;
  if (schedules.front().getSchedule().stores == StoreKind::NonTemporal)
    nonTemporal = builder.getUnitAttr();
  build(builder, state, sums, /*first_row=*/place[0],
        /*first_column=*/place[2], /*rows=*/place[1], /*columns=*/place[3],
        matmul.getBiasAttr(), layer, matmul.getEpilogueAttr(),
        matmul.getResidual(), matmul.getResidualRanksAttr(),
        matmul.getRotaryTable(), matmul.getKvCache(), matmul.getSlots(),
        matmul.getQueryNormAttr(), matmul.getKeyNormAttr(),
        matmul.getNormEpsilonAttr(), interleave, nonTemporal,
        matmul.getDestination());
}

/// Whether the channels of a row lie beside each other.
static bool hasContiguousRows(Value buffer) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(cast<MemRefType>(buffer.getType())
                       .getStridesAndOffset(strides, offset)) &&
         strides[1] == 1;
}

LogicalResult EpilogueOp::verify() {
  if (!hasContiguousRows(getSums()) || !hasContiguousRows(getDestination()) ||
      (getResidual() && !hasContiguousRows(getResidual())))
    return emitOpError("(C1) needs contiguous rows of sums, destination and "
                       "residual");
  constexpr int64_t maxInterleave = 4096;
  if (getInterleave().has_value() != (getEpilogue() == Epilogue::SiluMul) ||
      (getInterleave() &&
       (static_cast<int64_t>(*getInterleave()) <= 0 ||
        static_cast<int64_t>(*getInterleave()) > maxInterleave)))
    return emitOpError("(C2) interleave must be between 1 and ")
           << maxInterleave << ", and given for silu_mul only";
  return verifyEpilogue(*this, channels(getDestination()));
}

LogicalResult EpilogueOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVectors(*this, symbols,
                       getNeededRows(*this, channels(getDestination())));
}

void EpilogueOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (isa<BaseMemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  effects.emplace_back(MemoryEffects::Write::get(), &getDestinationMutable());
  if (getKvCache()) {
    effects.emplace_back(MemoryEffects::Write::get(), &getKvCacheMutable()[0]);
    effects.emplace_back(MemoryEffects::Write::get(), &getSumsMutable());
  }
}

//===----------------------------------------------------------------------===//
// Nest
//===----------------------------------------------------------------------===//

/// The sums that a nest hands to its body.
static MemRefType getSumsType(MLIRContext *context) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  return MemRefType::get(
      {dynamic, dynamic}, Float32Type::get(context),
      StridedLayoutAttr::get(context, dynamic, {dynamic, 1}));
}

void NestOp::build(OpBuilder &builder, OperationState &state, Value input,
                   Value weight, ArrayRef<Value> part, Value parameters,
                   const Schedule &schedule, int64_t unit,
                   ArrayRef<int64_t> rowsBetween, lm::StorageAttr storage,
                   PackingAttr packing) {
  MLIRContext *context = builder.getContext();
  state.addOperands({input, weight});
  state.addOperands(part);
  if (parameters)
    state.addOperands(parameters);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setSchedule(ScheduleAttr::get(context, schedule));
  properties.setUnit(builder.getI64IntegerAttr(unit));
  properties.setRowsBetween(builder.getDenseI64ArrayAttr(rowsBetween));
  properties.setStorage(storage);
  properties.setPacking(packing);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(state.addRegion());
  body->addArgument(getSumsType(context), state.location);
  for (int i = 0; i < 4; ++i)
    body->addArgument(builder.getIndexType(), state.location);
}

Packing NestOp::getWeightPacking() {
  if (PackingAttr packing = getPackingAttr())
    return packing.getPacking();
  ArrayRef<int64_t> shape = cast<MemRefType>(getWeight().getType()).getShape();
  return {.panel = shape[2] * shape[4],
          .tile = shape[4],
          .kStep = shape[3] * shape[5],
          .kPack = shape[5]};
}

StorageFormat NestOp::getStorageFormat() {
  return lm::storageFormatOf(
      getStorageAttr(),
      cast<MemRefType>(getWeight().getType()).getElementType());
}

int64_t NestOp::getK() {
  ArrayRef<int64_t> shape = cast<MemRefType>(getWeight().getType()).getShape();
  if (!getStorage())
    return shape[1] * getWeightPacking().kStep;
  return shape[1] *
         groupLength(getStorageFormat(), getWeightPacking().panel, shape[2]);
}

int64_t NestOp::getPackedColumns() {
  return cast<MemRefType>(getWeight().getType()).getDimSize(0) *
         getWeightPacking().panel;
}

/// Constraint (C1) of `gemm.nest`, whose weight is `weight`.
static bool readsWeight(NestOp op, MemRefType weight) {
  const bool isBytes = weight.getElementType().isInteger(8);
  if (!weight.hasStaticShape() || !weight.getLayout().isIdentity() ||
      llvm::any_of(
          weight.getShape(),
          [](int64_t size) { return size <= 0 || size > lm::maxDimension; }) ||
      op.getStorage().has_value() != isBytes ||
      op.getPacking().has_value() != isBytes)
    return false;
  if (!isBytes && llvm::any_of(weight.getShape().drop_front(2),
                               [](int64_t size) { return size > 4096; }))
    return false;
  const StorageFormat storage = op.getStorageFormat();
  const MicroKernel &kernel = op.getSchedule().getSchedule().microKernel;
  if (!multiplies(kernel.isa, storage) ||
      !reads(kernel, op.getWeightPacking(), storage))
    return false;
  if (!isBytes)
    return true;
  const int64_t group =
      groupLength(storage, op.getWeightPacking().panel, weight.getDimSize(2));
  return group > 0 && group <= largestGroup &&
         weight.getDimSize(1) <= lm::maxDimension / group &&
         sandwich::verify(storage, weight.getDimSize(1) * group) &&
         storage.groupOf(weight.getDimSize(1) * group) == group;
}

MatmulShape NestOp::getShape() {
  return {.n = getPackedColumns(),
          .k = getK(),
          .storage = getStorageFormat(),
          .packing = getWeightPacking(),
          .deterministic = lm::isDeterministic(*this)};
}

bool NestOp::widensGroups() {
  return sandwich::widensGroups(getSchedule().getSchedule(), getShape());
}

static LogicalResult emitUnreadable(NestOp op, MemRefType weight) {
  InFlightDiagnostic diagnostic =
      op.emitOpError("(C1) ")
      << op.getSchedule().getSchedule().microKernel.name()
      << " does not read a weight of " << weight;
  if (op.getStorage())
    diagnostic << ", stored as " << op.getStorageAttr() << " in "
               << op.getPackingAttr();
  return diagnostic;
}

LogicalResult NestOp::verify() {
  const MicroKernel &kernel = getSchedule().getSchedule().microKernel;
  auto weight = cast<MemRefType>(getWeight().getType());
  if (!readsWeight(*this, weight))
    return emitUnreadable(*this, weight);
  const Schedule &schedule = getSchedule().getSchedule();
  const MatmulShape shape = getShape();
  if (Status status = verifyRegrouping(schedule, shape); !status)
    return emitOpError("(C8) ") << status.error().message;
  if (Status status = verifyPrefetching(schedule, shape); !status)
    return emitOpError("(C7) ") << status.error().message;
  if (Status status = verifyCopiesAhead(schedule, shape); !status)
    return emitOpError("(C9) ") << status.error().message;
  if (schedule.copiesAhead &&
      (getParameters() || getConstantIntValue(getKBegin()) != 0 ||
       getConstantIntValue(getKEnd()) != getK()))
    return emitOpError("(C9) what is copied ahead is all of k, without "
                       "parameters");
  auto input = cast<MemRefType>(getInput().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(input.getStridesAndOffset(strides, offset)) || strides[1] != 1 ||
      ShapedType::isDynamic(strides[0]) || input.getDimSize(1) != getK() ||
      !readsInput(kernel.isa, input.getElementType()))
    return emitOpError("(C2) ")
           << kernel.name() << " needs " << getK()
           << (multipliesBF16(kernel.isa)       ? " bf16"
               : multipliesIntegers(kernel.isa) ? " f32 or bf16"
                                                : " f32")
           << " channels in contiguous rows at a static distance, not "
           << input;
  SmallVector<Type> arguments(5, IndexType::get(getContext()));
  arguments[0] = getSumsType(getContext());
  if (getBody()->getArgumentTypes() != TypeRange(arguments))
    return emitOpError("(C3) body must take ")
           << arguments[0] << " and four indices";
  int64_t unit = getUnit();
  if (unit <= 0 || unit % getWeightPacking().panel != 0)
    return emitOpError("(C4) unit must be a positive multiple of a panel's ")
           << getWeightPacking().panel << " columns";
  ArrayRef<int64_t> rows = getRowsBetween();
  if (rows.size() != 2 || rows[0] < 0 ||
      rows[1] < std::max<int64_t>(rows[0], 1) || rows[1] > lm::maxDimension)
    return emitOpError("(C5) rows_between needs two numbers, ascending, the "
                       "second one between 1 and ")
           << lm::maxDimension;
  // Two sizes below 2^31 cannot overflow.
  auto [bM, bN, bK] = getSchedule().getSchedule().slice;
  if (getParameters())
    return success();
  const int64_t blockRows = llvm::alignTo(bM, rowUnitOf(kernel.isa));
  if (blockRows * bN > maxBlockSums || bN % getWeightPacking().panel != 0)
    return emitOpError("(C6) slice must have whole panels, and at most ")
           << maxBlockSums << " sums; it has " << blockRows << " x " << bN;
  const StorageFormat storage = multipliedStorage(schedule, shape.storage);
  const bool copies =
      schedule.groupK > 0 || unpacksWeights(kernel.isa, shape.storage);
  if (copies && (bN * bK > maxUnpackedWeight ||
                 (schedule.groupK == 0 &&
                  !hasWholeGroups(kernel.isa, storage, getK(), bK))))
    return emitOpError("(C6) at most ")
           << maxUnpackedWeight
           << " weights can be unpacked, of whole groups or an equal part of "
              "one; a slice has "
           << bN << " x " << bK;
  const int64_t group = storage.groupOf(getK());
  const int64_t chunkK = schedule.chunkK;
  if (!hasWholeGroups(kernel.isa, storage, getK(), bK) ||
      (!unpacksWeights(kernel.isa, storage) && chunkK % group != 0))
    return emitOpError("(C6) integers are multiplied in whole groups of ")
           << group << " k; a slice has " << bK
           << (chunkK > 0 ? ", a chunk " + std::to_string(chunkK) : "");
  for (Value bound : {getKBegin(), getKEnd()})
    if (std::optional<int64_t> k = getConstantIntValue(bound);
        k && *k % group != 0)
      return emitOpError("(C6) k must begin and end at whole groups of ")
             << group << ", not at " << *k;
  if (schedule.packsInput && blockRows * bK > mostPackedInput(kernel.isa))
    return emitOpError("(C6) at most ")
           << mostPackedInput(kernel.isa)
           << " elements of input can be packed; a slice has " << blockRows
           << " x " << bK;
  return success();
}
