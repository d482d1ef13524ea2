//===- PhaseDialect.cpp - The dialect of SPMD programs --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Phase/IR/Phase.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::phase;

#include "sandwich/Dialect/Phase/IR/PhaseDialect.cpp.inc"

void PhaseDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Phase/IR/PhaseOps.cpp.inc"
      >();
}

func::FuncOp phase::createProgram(OpBuilder &builder, Location loc,
                                  StringRef name, Type cache, Type logits,
                                  ProgramAttr program, bool hasTokenTypes) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  Type i32 = builder.getI32Type();
  auto numbers = MemRefType::get({dynamic}, i32);
  auto bytes = MemRefType::get({dynamic}, builder.getI8Type());
  SmallVector<Type> types = {numbers,
                             numbers,
                             numbers,
                             MemRefType::get({dynamic, 4}, i32),
                             numbers,
                             numbers,
                             cache,
                             logits,
                             bytes,
                             bytes,
                             builder.getIndexType(),
                             TeamType::get(builder.getContext())};
  if (hasTokenTypes)
    types.push_back(numbers);
  auto function = func::FuncOp::create(builder, loc, name,
                                       builder.getFunctionType(types, {}));
  function->setAttr(programAttributeName, program);
  function.addEntryBlock();
  return function;
}

/// Whether `type` is the type of a program's argument in position `argument`.
static bool isArgumentType(ProgramArgument argument, Type type) {
  MLIRContext *context = type.getContext();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto isBuffer = [&](ArrayRef<int64_t> shape, unsigned width) {
    return type == MemRefType::get(shape, IntegerType::get(context, width));
  };
  switch (argument) {
  case ProgramArgument::TokenIds:
  case ProgramArgument::Positions:
  case ProgramArgument::CacheSlots:
  case ProgramArgument::BlockTables:
  case ProgramArgument::LogitRows:
  case ProgramArgument::TokenTypes:
    return isBuffer({dynamic}, 32);
  case ProgramArgument::Segments:
    return isBuffer({dynamic, 4}, 32);
  case ProgramArgument::Weights:
  case ProgramArgument::Workspace:
    return isBuffer({dynamic}, 8);
  case ProgramArgument::Thread:
    return isa<IndexType>(type);
  case ProgramArgument::Team:
    return isa<TeamType>(type);
  case ProgramArgument::KVCache:
  case ProgramArgument::Logits:
    break;
  }
  auto buffer = dyn_cast<MemRefType>(type);
  if (!buffer ||
      !(isa<Float32Type, Float16Type, BFloat16Type>(buffer.getElementType()) ||
        buffer.getElementType().isInteger(8)) ||
      !buffer.getLayout().isIdentity() || buffer.getMemorySpace() ||
      buffer.getRank() < 2 || !buffer.isDynamicDim(0))
    return false;
  if (llvm::any_of(buffer.getShape().drop_front(), ShapedType::isDynamic))
    return false;
  if (argument == ProgramArgument::Logits)
    return buffer.getRank() == 2 && buffer.getElementType().isF32();
  return buffer.getRank() == 5;
}

/// What `phase.sampling` takes, for `vocabulary` logits.
static SmallVector<Type> samplingTypes(MLIRContext *context,
                                       int64_t vocabulary) {
  Builder builder(context);
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  Type row = MemRefType::get({vocabulary}, f32);
  return {row, f32,
          i32, f32,
          f32, builder.getF64Type(),
          row, MemRefType::get({1}, i32)};
}

func::FuncOp phase::createSampling(OpBuilder &builder, Location loc,
                                   StringRef name, int64_t vocabulary) {
  auto function = func::FuncOp::create(
      builder, loc, name,
      builder.getFunctionType(samplingTypes(builder.getContext(), vocabulary),
                              {}));
  function->setAttr(samplingAttributeName, builder.getUnitAttr());
  function.addEntryBlock();
  return function;
}

bool phase::drawsTokens(func::FuncOp function) {
  return function->hasAttr(samplingAttributeName);
}

/// Whether `op` may have `phase.sampling` as `value`.
static LogicalResult verifySampling(Operation *op, Attribute value) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || !isa<UnitAttr>(value))
    return op->emitError("'phase.sampling' has no value and is on a function");
  FunctionType type = function.getFunctionType();
  auto logits = type.getNumInputs() == numSamplingArguments
                    ? dyn_cast<MemRefType>(type.getInput(0))
                    : MemRefType();
  if (!logits || logits.getRank() != 1 || !logits.hasStaticShape() ||
      logits.getDimSize(0) < 1 ||
      type.getInputs() != ArrayRef<Type>(samplingTypes(op->getContext(),
                                                       logits.getDimSize(0))) ||
      type.getNumResults() != 0 || !llvm::hasSingleElement(function.getBody()))
    return op->emitError(
        "a function that draws tokens is one block that takes logits, "
        "temperature, top-k, top-p, min-p, place, weights and token");
  return success();
}

LogicalResult PhaseDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  if (attribute.getName() == samplingAttributeName)
    return verifySampling(op, attribute.getValue());
  if (attribute.getName() != programAttributeName)
    return op->emitError("unknown attribute '")
           << attribute.getName().getValue() << "'";
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || !isa<ProgramAttr>(attribute.getValue()))
    return op->emitError(
        "(C2) 'phase.program' is a #phase.program on a function");
  FunctionType type = function.getFunctionType();
  const unsigned inputs = type.getNumInputs();
  bool fits =
      llvm::hasSingleElement(function.getBody()) &&
      (inputs == numProgramArguments || inputs == numProgramArguments + 1) &&
      type.getNumResults() == 0;
  for (unsigned i = 0; fits && i < inputs; ++i)
    fits = isArgumentType(static_cast<ProgramArgument>(i), type.getInput(i));
  if (!fits)
    return op->emitError(
        "(C2) a phase program is one block that takes token ids, positions, "
        "cache slots, segments, block tables, logit rows, cache, logits, "
        "weights, workspace, thread and team, and token types where it reads "
        "them");
  return success();
}

bool phase::hasTokenTypes(func::FuncOp function) {
  return function.getNumArguments() > numProgramArguments;
}

Value phase::getArgument(func::FuncOp function, ProgramArgument argument) {
  return function.getArgument(static_cast<unsigned>(argument));
}

ProgramAttr phase::getProgram(func::FuncOp function) {
  return function->getAttrOfType<ProgramAttr>(programAttributeName);
}
