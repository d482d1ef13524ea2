//===- PhaseAttributes.cpp - Attributes and types of phase ----------------===//
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

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseAttributes.cpp.inc"

void PhaseDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/Phase/IR/PhaseTypes.cpp.inc"
      >();
}

void PhaseDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Phase/IR/PhaseAttributes.cpp.inc"
      >();
}

LogicalResult ProgramAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t threads, int64_t maxTokens,
                                  int64_t maxLogitRows, int64_t workspaceBytes,
                                  ArrayRef<int64_t> tables) {
  if (threads <= 0 || threads > maxThreads || maxTokens <= 0 ||
      maxTokens > maxStepRows || maxLogitRows <= 0 ||
      maxLogitRows > maxStepRows || workspaceBytes < 0)
    return emitError() << "(C1) threads must be between 1 and " << maxThreads
                       << ", max_tokens and max_logit_rows between 1 and "
                       << maxStepRows << ", workspace_bytes not negative";
  if (!tables.empty() &&
      (tables.size() != 3 || llvm::any_of(tables, [](int64_t rows) {
         return rows < 0 || rows > INT32_MAX;
       })))
    return emitError() << "(C3) tables must be three numbers between 0 and "
                       << INT32_MAX;
  return success();
}
