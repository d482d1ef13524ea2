//===- LMInterfaces.td - What other dialects decide -------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LMINTERFACES_TD
#define SANDWICH_DIALECT_LM_IR_LMINTERFACES_TD

include "mlir/IR/Interfaces.td"

def LM_PackingAttrInterface : AttrInterface<"PackingAttrInterface"> {
  let cppNamespace = "::sandwich::lm";
  let description = "How the artifact stores a weight of two dimensions.";
  let methods = [
    InterfaceMethod<"What the weight's columns must be a multiple of.",
                    "int64_t", "getKStep">,
    InterfaceMethod<"The buffer of one slice of `rows` by `columns`.",
                    "::mlir::MemRefType", "getBufferType",
                    (ins "int64_t":$rows, "int64_t":$columns,
                         "::mlir::Type":$elementType)>,
  ];
}

#endif // SANDWICH_DIALECT_LM_IR_LMINTERFACES_TD
