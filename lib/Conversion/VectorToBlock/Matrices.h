//===- Matrices.h - Memory that has rows ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_MATRICES_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_MATRICES_H

#include "BlockLoops.h"

namespace sandwich::widening {

/// A place in memory: a row, and a column; in memory without rows a column.
struct Place {
  IndexForm row, column;
};

/// The memory of a function's arguments that is reached by rows of a known
/// length: `64 * row + column`, where no column is beyond that.
class Matrices {
public:
  Matrices(mlir::func::FuncOp function, const BlockLoops &blocks);

  /// How long rows of `memory` are; nothing if it has none.
  std::optional<int64_t> lengthOf(mlir::Value memory) const;
  /// The place of an access by `index`.
  Place placeOf(mlir::Value memory, mlir::Value index) const;

private:
  llvm::DenseMap<mlir::Value, int64_t> lengths;
};

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_MATRICES_H
