//===- Preparation.h - Raised functions made plain --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_PREPARATION_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_PREPARATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sandwich::widening {

/// Whether all memory in `function` has one dimension, of numbers of whole
/// bytes that lie beside each other, and is reached by nothing but loads,
/// stores, casts and views of bytes; and all vectors have known sizes. A
/// warning says what has another form.
bool isPlain(mlir::func::FuncOp function);

/// Makes memory of bytes that is seen as one kind of numbers, which begin at
/// whole ones of them, memory of those.
void retypeBytes(mlir::func::FuncOp function);

/// Computes constants that are read as other numbers.
void foldBitcasts(mlir::func::FuncOp function);

/// Takes numbers that are read of memory of the function's own, to which a
/// vector was written just before, from that vector, as of a union, and what
/// was read before from there; memory that nothing reads any more goes.
void forwardStores(mlir::func::FuncOp function);

/// Makes choices between numbers of branches that do nothing else, and one
/// operation of those that are the same.
void flattenBranches(mlir::func::FuncOp function);

/// Makes floats more precise before their lanes are parted, not behind that, so
/// that all of them may be a sum. What is a sum already stays one.
void extendBeforeShuffles(mlir::func::FuncOp function);

/// Makes variables of loops that grow by the same number every turn, such as
/// pointers, sums of where they begin and of the loop's index.
void simplifyInductions(mlir::func::FuncOp function);

/// Makes a `vector.create_mask` of every mask whose first lanes hold and no
/// others, be it made of bits or by a comparison with the lanes' numbers. A
/// mask that became bits in between is what it was before, and one of all lanes
/// is none.
void recognizeMasks(mlir::func::FuncOp function);

/// Erases what nothing needs.
void eraseDead(mlir::func::FuncOp function);

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_PREPARATION_H
