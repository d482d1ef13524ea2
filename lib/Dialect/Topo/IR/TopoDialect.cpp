//===- TopoDialect.cpp - The dialect of machines --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/IR/Topo.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

#include "sandwich/Dialect/Topo/IR/TopoDialect.cpp.inc"

void TopoDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "sandwich/Dialect/Topo/IR/TopoOps.cpp.inc"
      >();
}

LogicalResult TopoDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != workloadAttributeName)
    return op->emitError("unknown attribute '")
           << attribute.getName().getValue() << "'";
  if (!isa<ModuleOp>(op) || !isa<WorkloadAttr>(attribute.getValue()))
    return op->emitError(
        "(C3) 'topo.workload' is a #topo.workload on a module");
  return success();
}
