//===- Topo.h - Machines and how they are used ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TOPO_IR_TOPO_H
#define SANDWICH_DIALECT_TOPO_IR_TOPO_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"
#include "sandwich/Topology/Search/ServiceConfiguration.h"
#include "sandwich/Topology/Trees/TopoTree.h"

#include "sandwich/Dialect/Topo/IR/TopoDialect.h.inc"
#include "sandwich/Dialect/Topo/IR/TopoEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Topo/IR/TopoAttributes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Topo/IR/TopoOps.h.inc"

namespace sandwich::topo {

/// The attribute that holds a `WorkloadAttr` on a module.
inline constexpr llvm::StringLiteral workloadAttributeName = "topo.workload";

/// Writes a symmetric machine whose trees end in `leaves`. Errors: it is not
/// symmetric, or has no CPUs.
Result<MachineOp> buildMachine(mlir::OpBuilder &builder, mlir::Location loc,
                               llvm::StringRef name, const MachineNode &machine,
                               Leaves leaves);

/// Writes how `tree` was made of `machine`.
DeriveOp buildDerive(mlir::OpBuilder &builder, mlir::Location loc,
                     llvm::StringRef name, MachineOp machine,
                     const TopoTree &tree);

/// The workload as the latency model takes it.
ModelWork getWork(WorkloadAttr workload);

} // namespace sandwich::topo

#endif // SANDWICH_DIALECT_TOPO_IR_TOPO_H
