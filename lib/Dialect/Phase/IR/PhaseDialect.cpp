//===- PhaseDialect.cpp - The SPMD program dialect ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Phase/IR/Phase.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::phase;

#include "sandwich/Dialect/Phase/IR/PhaseDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseOps.cpp.inc"

void PhaseDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/Phase/IR/PhaseTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Phase/IR/PhaseAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Phase/IR/PhaseOps.cpp.inc"
      >();
}

LogicalResult ProgramAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t threads, int64_t maxTokens,
                                  int64_t maxLogitRows,
                                  int64_t workspaceBytes) {
  if (threads <= 0 || threads > maxThreads || maxTokens <= 0 ||
      maxTokens > maxStepRows || maxLogitRows <= 0 ||
      maxLogitRows > maxStepRows || workspaceBytes < 0)
    return emitError() << "(C1) threads must be between 1 and " << maxThreads
                       << ", max_tokens and max_logit_rows between 1 and "
                       << maxStepRows << ", workspace_bytes not negative";
  return success();
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
  case ProgramArgument::Sequences:
  case ProgramArgument::LogitRows:
    return isBuffer({dynamic}, 32);
  case ProgramArgument::BlockTables:
    return isBuffer({dynamic, dynamic}, 32);
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
      !isa<Float32Type, Float16Type, BFloat16Type>(buffer.getElementType()) ||
      !buffer.getLayout().isIdentity() || buffer.getMemorySpace() ||
      buffer.getRank() < 2 || !buffer.isDynamicDim(0))
    return false;
  if (llvm::any_of(buffer.getShape().drop_front(), ShapedType::isDynamic))
    return false;
  if (argument == ProgramArgument::Logits)
    return buffer.getRank() == 2 && buffer.getElementType().isF32();
  return buffer.getRank() == 5;
}

LogicalResult PhaseDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  if (attribute.getName() != programAttributeName)
    return op->emitError("unknown attribute '")
           << attribute.getName().getValue() << "'";
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || !isa<ProgramAttr>(attribute.getValue()))
    return op->emitError(
        "(C2) 'phase.program' is a #phase.program on a function");
  FunctionType type = function.getFunctionType();
  bool fits = llvm::hasSingleElement(function.getBody()) &&
              type.getNumInputs() == numProgramArguments &&
              type.getNumResults() == 0;
  for (unsigned i = 0; fits && i < numProgramArguments; ++i)
    fits = isArgumentType(static_cast<ProgramArgument>(i), type.getInput(i));
  if (!fits)
    return op->emitError("(C2) a phase program is one block that takes token "
                         "ids, positions, sequences, logit rows, block tables, "
                         "cache, logits, weights, workspace, thread and team");
  return success();
}

Value phase::getArgument(func::FuncOp function, ProgramArgument argument) {
  return function.getArgument(static_cast<unsigned>(argument));
}

ProgramAttr phase::getProgram(func::FuncOp function) {
  return function->getAttrOfType<ProgramAttr>(programAttributeName);
}

bool phase::areDenseRows(Type type) {
  auto buffer = cast<MemRefType>(type);
  return buffer.getLayout().isIdentity() && !buffer.isDynamicDim(1) &&
         buffer.getDimSize(1) > 0;
}

LogicalResult AllGatherOp::verify() {
  int64_t part = cast<MemRefType>(getPart().getType()).getDimSize(1);
  if (cast<MemRefType>(getWhole().getType()).getDimSize(1) % part != 0)
    return emitOpError("(C1) the whole must have a multiple of the part's ")
           << part << " channels";
  return success();
}

LogicalResult MarkOp::verify() {
  constexpr size_t longestName = 1024;
  if (getName().empty() || getName().size() > longestName)
    return emitOpError("(C1) the name must be 1 to ")
           << longestName << " bytes long";
  for (uint64_t cost : {getBytes(), getBytesPerPosition(), getFlopsPerToken(),
                        getFlopsPerLogitRow(), getFlopsPerAttended()})
    if (cost > static_cast<uint64_t>(INT64_MAX))
      return emitOpError("(C2) costs must not be negative");
  return success();
}

SmallVector<MarkOp> phase::getMarkedOperations(func::FuncOp function) {
  llvm::SmallDenseSet<DictionaryAttr> known;
  SmallVector<MarkOp> operations;
  function.walk([&](MarkOp mark) {
    if (known.insert(mark->getAttrDictionary()).second)
      operations.push_back(mark);
  });
  return operations;
}
