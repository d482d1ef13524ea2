//===- GemmDialect.td - The scheduled matmul dialect -------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_GEMM_IR_GEMMDIALECT_TD
#define SANDWICH_DIALECT_GEMM_IR_GEMMDIALECT_TD

include "mlir/IR/OpBase.td"

def Gemm_Dialect : Dialect {
  let name = "gemm";
  let cppNamespace = "::sandwich::gemm";
  let summary = "Matmuls that say how they run";
  let description = [{
    The schedule IR: every matmul carries a table from token counts to
    schedules, and a fused epilogue. The attributes are the written form of
    the types in sandwich/Scheduling, so a decision can be printed, edited by
    hand and fed back. See docs/RationaleGemm.md.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::sandwich::lm::LMDialect"];
  let extraClassDeclaration = "void registerAttributes();";
}

#endif // SANDWICH_DIALECT_GEMM_IR_GEMMDIALECT_TD
