//===- PhaseDialect.td - SPMD programs ---------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_PHASE_IR_PHASEDIALECT_TD
#define SANDWICH_DIALECT_PHASE_IR_PHASEDIALECT_TD

include "mlir/IR/OpBase.td"

def Phase_Dialect : Dialect {
  let name = "phase";
  let cppNamespace = "::sandwich::phase";
  let summary = "Phases as SPMD programs";
  let description = [{
    A phase program is a function that every thread of a team runs on the same
    buffers. `phase.program` on the function records its team and limits; its
    arguments are fixed (see `sandwich::phase::ProgramArgument`).

    `phase.sampling` is on a function beside the programs that draws a token
    from a row of logits; its arguments are fixed, too
    (`sandwich::phase::SamplingArgument`).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // SANDWICH_DIALECT_PHASE_IR_PHASEDIALECT_TD
