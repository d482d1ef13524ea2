//===- MicroKernel.cpp - Micro-kernels as functions -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/MicroKernel.h"
#include "Emitters.h"
#include "sandwich/Target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <algorithm>

using namespace mlir;
using namespace sandwich;

std::string MicroKernelSpecialization::name() const {
  std::string name = kernel.name();
  if (!hasTiles(kernel.isa) && !packedInput)
    name += "_ld" + std::to_string(inputStride);
  if (Packing weights = weightPacking(); weights != packingOf(kernel.isa))
    name += "_panel" + std::to_string(weights.panel);
  if (widensWeights)
    name += "_widen";
  if (storage.isQuantized()) {
    name += "_" + storage.name() + "_group" + std::to_string(group);
    std::ranges::replace(name, '-', '_');
  }
  if (prefetchLines > 0)
    name += "_prefetch" + std::to_string(prefetchLines);
  if (prefetchLines > 0 && prefetchPanels > 1)
    name += "x" + std::to_string(prefetchPanels);
  if (prefetchLines > 0 && prefetchStreams > 1)
    name += "s" + std::to_string(prefetchStreams);
  if (prefetchLines > 0 && prefetchHint != PrefetchHint::L1)
    name += "_" + std::string(sandwich::name(prefetchHint));
  if (packedInput)
    name += "_packed";
  if (streamed != StreamedOperands::None)
    name += "_stream_" + std::string(sandwich::name(streamed));
  if (ahead)
    name += "_" + ahead->name() + "_" + std::to_string(stepsOfRound);
  if (ahead && aheadDistance > 0)
    name += "_at" + std::to_string(aheadDistance) + "_" +
            std::string(sandwich::name(prefetchHint));
  if (operandsStay)
    name += "_operands_stay";
  return name;
}

Packing MicroKernelSpecialization::weightPacking() const {
  return packing.value_or(packingOf(kernel.isa));
}

static Type getType(MatrixElement element, MLIRContext *context) {
  switch (element) {
  case MatrixElement::F32:
    return Float32Type::get(context);
  case MatrixElement::BF16:
    return BFloat16Type::get(context);
  case MatrixElement::Int8:
    return IntegerType::get(context, 8);
  }
  llvm_unreachable("every element has a type");
}

Type MicroKernelSpecialization::inputType(MLIRContext *context) const {
  return getType(elementOf(kernel.isa), context);
}

Type WeightUnpacking::type(MLIRContext *context) const {
  return getType(element, context);
}

Type MicroKernelSpecialization::weightType(MLIRContext *context) const {
  if (storage.isQuantized())
    return IntegerType::get(context, 8);
  if (widensWeights)
    return BFloat16Type::get(context);
  return inputType(context);
}

int64_t sandwich::getColumnOffset(const Packing &packing, int64_t column) {
  return column / packing.tile * packing.tile * packing.kStep +
         column % packing.tile * packing.kPack;
}

int64_t sandwich::packedRows(MatrixISA isa, int64_t rows) {
  return hasTiles(isa) ? rows : llvm::alignTo(rows, registerFileOf(isa).rows);
}

void MicroKernelEmitter::emitInputPacking(LoopBuilder &, const Packing &,
                                          const InputPiece &) const {
  llvm_unreachable("these micro-kernels read their input in rows");
}

const MicroKernelEmitter &sandwich::getMicroKernelEmitter(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::ARM_NEON_F32:
    return getVectorEmitter();
  case MatrixISA::ARM_SVE_F32:
    return getScalableVectorEmitter();
  case MatrixISA::X86_AVX2_INT8:
    return getX86MultiplyAddInt8Emitter();
  case MatrixISA::X86_AVX_VNNI:
  case MatrixISA::X86_AVX512_VNNI:
    return getX86DotInt8Emitter();
  case MatrixISA::X86_AVX512_BF16:
    return getX86DotBF16Emitter();
  case MatrixISA::X86_AMX_BF16:
    return getAMXEmitter();
  case MatrixISA::X86_AMX_INT8:
    return getAMXInt8Emitter();
  case MatrixISA::ARM_NEON_DOTPROD:
    return getNeonDotInt8Emitter();
  case MatrixISA::ARM_NEON_I8MM:
    return getNeonMatrixInt8Emitter();
  case MatrixISA::ARM_NEON_BF16:
    return getNeonBFMMLAEmitter();
  case MatrixISA::ARM_SVE_BF16:
    return getScalableBFMMLAEmitter();
  }
  llvm_unreachable("every instruction set has an emitter");
}

SmallVector<Value> MicroKernelArguments::values() const {
  SmallVector<Value> result;
  for (auto field : fields)
    if (Value value = this->*field)
      result.push_back(value);
  return result;
}

MicroKernelArguments MicroKernelArguments::from(ValueRange values) {
  MicroKernelArguments result;
  for (auto [field, value] : llvm::zip(fields, values))
    result.*field = value;
  return result;
}

/// Types of the arguments, in order.
static SmallVector<Type>
getArgumentTypes(MLIRContext *context,
                 const MicroKernelSpecialization &specialization) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  Type index = IndexType::get(context);
  auto rows = [&](Type type, int64_t stride) {
    return MemRefType::get(
        {dynamic, dynamic}, type,
        StridedLayoutAttr::get(context, dynamic, {stride, 1}));
  };
  const bool tiles = hasTiles(specialization.kernel.isa);
  SmallVector<Type> types = {
      rows(specialization.inputType(context),
           tiles || specialization.packedInput ? dynamic
                                               : specialization.inputStride),
      index,
      index,
      index,
      MemRefType::get({dynamic}, specialization.weightType(context)),
      index,
      index,
      rows(Float32Type::get(context), dynamic),
      index,
      index,
      IntegerType::get(context, 1),
      index,
      index,
      index};
  if (tiles)
    types.append(2, index);
  if (specialization.ahead) {
    types.push_back(MemRefType::get({dynamic}, IntegerType::get(context, 8)));
    types.append(5, index);
  }
  return types;
}

func::FuncOp MicroKernelLibrary::getOrEmit(
    StringRef name, TypeRange types,
    function_ref<void(ImplicitLocOpBuilder &, ValueRange)> emitBody) {
  func::FuncOp &function = functions[name];
  if (function)
    return function;
  Operation *module = symbols.getOp();
  auto builder = ImplicitLocOpBuilder::atBlockEnd(
      module->getLoc(), &module->getRegion(0).front());
  function =
      func::FuncOp::create(builder, name, builder.getFunctionType(types, {}));
  function.setPrivate();
  // Not inlined by MLIR, and through LLVM's own attribute not by LLVM either;
  // internal functions lose the arguments they do not use.
  function.setNoInline(true);
  function->setAttr("passthrough", builder.getStrArrayAttr({"noinline"}));
  function->setAttr(
      "llvm.linkage",
      LLVM::LinkageAttr::get(module->getContext(), LLVM::Linkage::Internal));
  symbols.insert(function);

  builder.setInsertionPointToStart(function.addEntryBlock());
  emitBody(builder, function.getArguments());
  func::ReturnOp::create(builder);
  return function;
}

func::FuncOp
MicroKernelLibrary::get(const MicroKernelSpecialization &specialization) {
  return getOrEmit(
      specialization.name(),
      getArgumentTypes(symbols.getOp()->getContext(), specialization),
      [&](ImplicitLocOpBuilder &builder, ValueRange arguments) {
        const bool widens = specialization.storage.isQuantized() &&
                            !multipliesIntegers(specialization.kernel.isa);
        const MicroKernelEmitter &emitter =
            widens ? getGroupWideningEmitter()
                   : getMicroKernelEmitter(specialization.kernel.isa);
        emitter.emitBody(builder, specialization,
                         MicroKernelArguments::from(arguments));
      });
}

void MicroKernelLibrary::unpack(ImplicitLocOpBuilder &builder,
                                const WeightUnpacking &unpacking,
                                const UnpackingArguments &arguments) {
  MLIRContext *context = builder.getContext();
  Type index = IndexType::get(context);
  Type types[] = {
      MemRefType::get({ShapedType::kDynamic}, IntegerType::get(context, 8)),
      index,
      index,
      index,
      index,
      MemRefType::get({ShapedType::kDynamic}, unpacking.type(context)),
      index};
  func::FuncOp function =
      getOrEmit(unpacking.name(), types,
                [&](ImplicitLocOpBuilder &body, ValueRange values) {
                  LoopBuilder loops(body.getLoc(), context);
                  loops.setInsertionPointToStart(body.getInsertionBlock());
                  emitUnpacking(loops, unpacking,
                                {values[0], values[1], values[2], values[3],
                                 values[4], values[5], values[6]});
                  body.setInsertionPointToEnd(body.getInsertionBlock());
                });
  func::CallOp::create(builder, function,
                       ValueRange{arguments.weight, arguments.weightOffset,
                                  arguments.groups, arguments.begin,
                                  arguments.end, arguments.copy,
                                  arguments.place});
}

/// The arguments, with buffers cast to the types that functions take.
static SmallVector<Value> castArguments(ImplicitLocOpBuilder &builder,
                                        TypeRange types,
                                        const MicroKernelArguments &arguments) {
  SmallVector<Value> operands;
  for (auto [value, type] : llvm::zip_equal(arguments.values(), types)) {
    if (value.getType() == type)
      operands.push_back(value);
    else
      operands.push_back(memref::CastOp::create(builder, type, value));
  }
  return operands;
}

void MicroKernelLibrary::call(ImplicitLocOpBuilder &builder,
                              const MicroKernelSpecialization &specialization,
                              const MicroKernelArguments &arguments) {
  func::FuncOp function = get(specialization);
  func::CallOp::create(
      builder, function,
      castArguments(builder, function.getArgumentTypes(), arguments));
}

void MicroKernelLibrary::callAddress(
    ImplicitLocOpBuilder &builder, Value address,
    const MicroKernelSpecialization &specialization,
    const MicroKernelArguments &arguments) {
  MLIRContext *context = builder.getContext();
  auto type =
      builder.getFunctionType(getArgumentTypes(context, specialization), {});
  Value bits =
      arith::IndexCastOp::create(builder, builder.getI64Type(), address);
  Value pointer = LLVM::IntToPtrOp::create(
      builder, LLVM::LLVMPointerType::get(context), bits);
  Value function =
      UnrealizedConversionCastOp::create(builder, type, pointer).getResult(0);
  func::CallIndirectOp::create(
      builder, function, castArguments(builder, type.getInputs(), arguments));
}

Value sandwich::getInputBlock(ImplicitLocOpBuilder &builder, int64_t rows,
                              const MicroKernelArguments &arguments) {
  return memref::SubViewOp::create(
      builder, arguments.input,
      ArrayRef<OpFoldResult>{arguments.firstRow, arguments.firstK},
      {builder.getIndexAttr(rows), arguments.k},
      {builder.getIndexAttr(1), builder.getIndexAttr(1)});
}

Value sandwich::getPackedInput(ImplicitLocOpBuilder &builder,
                               const MicroKernel &kernel,
                               const MicroKernelArguments &arguments) {
  const int64_t rows = packedRows(kernel.isa, kernel.rows);
  Value size =
      arith::MulIOp::create(builder, arguments.k, createIndex(builder, rows));
  return memref::SubViewOp::create(
      builder, arguments.input,
      ArrayRef<OpFoldResult>{builder.getIndexAttr(0), arguments.firstK},
      {builder.getIndexAttr(1), size},
      {builder.getIndexAttr(1), builder.getIndexAttr(1)});
}

Value sandwich::getSumsBlock(ImplicitLocOpBuilder &builder,
                             const MicroKernel &kernel,
                             const MicroKernelArguments &arguments) {
  return memref::SubViewOp::create(
      builder, arguments.sums,
      ArrayRef<OpFoldResult>{arguments.sumsRow, arguments.sumsColumn},
      {builder.getIndexAttr(kernel.rows), builder.getIndexAttr(kernel.columns)},
      {builder.getIndexAttr(1), builder.getIndexAttr(1)});
}

Value sandwich::getPanels(ImplicitLocOpBuilder &builder, const Packing &packing,
                          int64_t first, int64_t count,
                          const MicroKernelArguments &arguments) {
  auto distance = [&](int64_t panels) -> Value {
    return arith::MulIOp::create(builder, arguments.panelStride,
                                 createIndex(builder, panels));
  };
  Value offset = arguments.weightOffset;
  if (first > 0)
    offset = arith::AddIOp::create(builder, offset, distance(first));
  Value size = arith::MulIOp::create(builder, arguments.k,
                                     createIndex(builder, packing.panel));
  if (count > 1)
    size = arith::AddIOp::create(builder, size, distance(count - 1));
  return memref::SubViewOp::create(builder, arguments.weight,
                                   ArrayRef<OpFoldResult>{offset}, {size},
                                   {builder.getIndexAttr(1)});
}

int32_t sandwich::localityOf(PrefetchHint hint) {
  switch (hint) {
  case PrefetchHint::L1:
    return 3;
  case PrefetchHint::L2:
    return 2;
  case PrefetchHint::NonTemporal:
    return 0;
  }
  llvm_unreachable("not a hint");
}

Prefetcher::Prefetcher(ImplicitLocOpBuilder &builder,
                       const MicroKernelSpecialization &specialization,
                       const MicroKernelArguments &arguments, Value offset)
    : builder(builder), specialization(specialization), arguments(arguments),
      offset(offset) {}

int64_t Prefetcher::count() const {
  return specialization.prefetchPanels * specialization.prefetchStreams *
         specialization.prefetchLines;
}

void Prefetcher::emit(int64_t end) {
  int64_t lineElements =
      8 * cacheLineBytes /
      cast<MemRefType>(arguments.weight.getType()).getElementTypeBitWidth();
  for (end = std::min(end, count()); emitted < end; ++emitted) {
    int64_t line = emitted % specialization.prefetchLines;
    int64_t beginning = emitted / specialization.prefetchLines;
    if (line == 0) {
      if (beginning == 0)
        panel = offset;
      else if (beginning % specialization.prefetchStreams == 0)
        panel = arith::AddIOp::create(builder, panel, arguments.panelStride);
      if (beginning % specialization.prefetchStreams == 0)
        stream = panel;
      else
        stream = arith::AddIOp::create(builder, stream,
                                       arguments.prefetchStreamStride);
    }
    memref::PrefetchOp::create(
        builder, arguments.weight,
        ValueRange{addConstant(builder, stream, line * lineElements)},
        /*isWrite=*/false, localityOf(specialization.prefetchHint),
        /*isDataCache=*/true);
  }
}

Value Prefetcher::next() {
  return arith::AddIOp::create(builder, offset, arguments.prefetchStride);
}
