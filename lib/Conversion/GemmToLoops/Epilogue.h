//===- Epilogue.h - What a matmul does to its sums --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_GEMMTOLOOPS_EPILOGUE_H
#define SANDWICH_LIB_CONVERSION_GEMMTOLOOPS_EPILOGUE_H

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"

namespace sandwich {

/// Replaces the epilogue of one block of sums, inside a phase program, by loops
/// over vectors.
void emitEpilogue(gemm::EpilogueOp op, mlir::SymbolTableCollection &symbols);

/// The `rotate_append_kv` case of `emitEpilogue`; leaves `op`.
void emitRotateAppendKV(gemm::EpilogueOp op,
                        mlir::SymbolTableCollection &symbols);

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_GEMMTOLOOPS_EPILOGUE_H
