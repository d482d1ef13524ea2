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
  if (threads <= 0 || maxTokens <= 0 || maxLogitRows <= 0 || workspaceBytes < 0)
    return emitError() << "(C1) threads, max_tokens and max_logit_rows must be "
                          "positive, workspace_bytes not negative";
  return success();
}

Value phase::getArgument(func::FuncOp function, ProgramArgument argument) {
  return function.getArgument(static_cast<unsigned>(argument));
}

ProgramAttr phase::getProgram(func::FuncOp function) {
  return function->getAttrOfType<ProgramAttr>(programAttributeName);
}
