//===- Epilogue.h - What a matmul does to its sums --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_GEMMTOLOOPS_EPILOGUE_H
#define SANDWICH_LIB_CONVERSION_GEMMTOLOOPS_EPILOGUE_H

#include "sandwich/Conversion/LoopBuilder.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"

namespace sandwich {

/// One finished block of a matmul's sums, in cache and owned by one thread.
struct SumsBlock {
  /// memref<?x?xf32, strided<[S, 1], offset: ?>> with S the static columns of
  /// the slice, a multiple of 32; row r and column c of the block are
  /// `sums[r, c]`. Rows beyond `rows` are absent; columns beyond `columns` up
  /// to the next multiple of 16 exist and hold zeros or unused sums, so vectors
  /// may read across the end.
  mlir::Value sums;
  /// index: the block's first token, and how many it has (at least one).
  mlir::Value firstRow;
  mlir::Value rows;
  /// index: the block's first weight row as packed (a multiple of the shape's
  /// columnUnit), and how many rows the weight has from there on that lie in
  /// the block, at least one. For interleaved weights both count the rows that
  /// fill up groups.
  mlir::Value firstColumn;
  mlir::Value columns;
};

/// Emits the epilogue of `op`, in buffer form, on one block: adds the bias,
/// applies the epilogue, writes the rows and columns of the destination (or
/// the cache) that the block owns and no others. Emits at the builder's
/// insertion point, inside the phase program.
void emitEpilogue(LoopBuilder &builder, gemm::MatmulOp op,
                  const SumsBlock &block);

/// The `rotate_append_kv` case of `emitEpilogue`.
void emitRotateAppendKV(LoopBuilder &builder, gemm::MatmulOp op,
                        const SumsBlock &block);

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_GEMMTOLOOPS_EPILOGUE_H
