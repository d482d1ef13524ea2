//===- Kernel.h - The dialect of hand-written kernels -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_KERNEL_IR_KERNEL_H
#define SANDWICH_DIALECT_KERNEL_IR_KERNEL_H

#include "sandwich/Kernel/Intrinsics.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "sandwich/Dialect/Kernel/IR/KernelDialect.h.inc"
#include "sandwich/Dialect/Kernel/IR/KernelEnums.h.inc"

namespace sandwich::kernel {

/// Whether `type` is that of a truth, an integer of C, with its sign, or a
/// float.
bool isNumber(mlir::Type type);
/// Whether it is one that an expression of C may have: also a vector, a mask or
/// a pointer.
bool isValue(mlir::Type type);
/// Whether it is that of a number, or of a vector of them that is no mask.
bool isNumberOrVector(mlir::Type type);
/// Whether it is one that a variable may have: also an array or a structure.
bool isObject(mlir::Type type);
/// Whether it is that of a mask.
bool isMask(mlir::Type type);

} // namespace sandwich::kernel

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Kernel/IR/KernelTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Kernel/IR/KernelAttributes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Kernel/IR/KernelOps.h.inc"

namespace sandwich::kernel {

/// The bits of a number or a vector; 0 of all else.
int64_t bitWidthOf(mlir::Type type);

/// The type of lanes, of what a parameter or a result of an intrinsic is.
mlir::Type typeOf(LaneType type, mlir::MLIRContext *context);
mlir::Type typeOf(const ParameterType &type, mlir::MLIRContext *context);
/// Whether C has one type for both: vectors of integers, or floats of 16 bits
/// among them, of as many bits, and pointers to such.
bool areInterchangeable(mlir::Type given, mlir::Type wanted);

/// How C lays out an object, in bytes.
struct Layout {
  int64_t size, alignment;
};
/// Of an object; nothing if it has more than 2^40 bytes.
std::optional<Layout> layoutOf(mlir::Type type);
/// Where the member `name` begins, of a structure that has it and a layout.
int64_t offsetOf(StructureType structure, llvm::StringRef name);

} // namespace sandwich::kernel

#endif // SANDWICH_DIALECT_KERNEL_IR_KERNEL_H
