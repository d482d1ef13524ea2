//===- LMDialect.td - The language-model dialect -----------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LMDIALECT_TD
#define SANDWICH_DIALECT_LM_IR_LMDIALECT_TD

include "mlir/IR/OpBase.td"

def LM_Dialect : Dialect {
  let name = "lm";
  let cppNamespace = "::sandwich::lm";
  let summary = "What a language model computes";
  let description = [{
    The model IR: a transformer as one function for each phase, `prefill` and
    `decode` of those that generate, `embed`, `embed_tokens` or `classify` of
    those that encode, over a dynamic number of tokens. Layers are one `scf.for`
    loop, so a layer is compiled once; weights are module-level symbols with one
    slice for each layer.

    Operations have a tensor form, in which the model is built and rewritten,
    and those that survive to code generation a buffer form, which writes to a
    destination and returns nothing. See docs/RationaleLM.md.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = [
    "::mlir::func::FuncDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect"
  ];
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // SANDWICH_DIALECT_LM_IR_LMDIALECT_TD
