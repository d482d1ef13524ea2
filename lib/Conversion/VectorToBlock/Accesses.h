//===- Accesses.h - What reads and writes memory ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_ACCESSES_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_ACCESSES_H

#include "mlir/IR/Operation.h"

namespace sandwich::widening {

/// What `op` reads or writes, a number or a vector; null for other operations.
mlir::Value accessedMemory(mlir::Operation *op);
/// The index that it does so at, in memory of one dimension.
mlir::Value accessedIndex(mlir::Operation *op);
/// What it writes; null where it reads.
mlir::Value writtenValue(mlir::Operation *op);
/// Whether it is of a vector, all of whose lanes are there.
bool isWholeVector(mlir::Operation *access);
/// The memory that `value` is, whatever it was cast to.
mlir::Value memoryOf(mlir::Value value);

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_ACCESSES_H
