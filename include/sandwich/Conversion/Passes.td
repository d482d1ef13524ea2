//===- Passes.td - Between dialects ------------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CONVERSION_PASSES_TD
#define SANDWICH_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def LMToGemm : Pass<"lm-to-gemm", "::mlir::ModuleOp"> {
  let summary = "Turn dense layers into matmuls with fused epilogues";
  let description = [{
    Every `lm.linear` becomes a `gemm.matmul`. Linear layers of the same input
    that feed one operation become one matmul over a fused weight: query, key
    and value projections with what is done to their results
    (`rotate_append_kv`), gate and up projections (`silu_mul`). A residual
    connection joins the matmul it adds (`add_residual`).

    ```mlir
    %gate = lm.linear %x, @gate_proj[%layer] : ...
    %up = lm.linear %x, @up_proj[%layer] : ...
    %hidden = lm.silu_mul %gate, %up : ...
    // becomes
    %hidden = gemm.matmul %x, @gate_up_proj[%layer] epilogue(<silu_mul>) : ...
    ```
  }];
  let dependentDialects = ["::sandwich::gemm::GemmDialect"];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Number of matmuls created">
  ];
}

def PhaseToLLVM : Pass<"phase-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Give phase programs their C entry points";
  let description = [{
    For each phase program `NAME` adds the function `sandwich_NAME` of the C
    type `SandwichPhaseFunction` (sandwich/Runtime/PhaseABI.h), which reads the
    step's fields and calls the program; barriers become calls through the
    step. Programs become private.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::arith::ArithDialect"];
}

#endif // SANDWICH_CONVERSION_PASSES_TD
