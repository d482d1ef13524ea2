//===- PhaseOps.td - The SPMD program dialect --------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_PHASE_IR_PHASEOPS_TD
#define SANDWICH_DIALECT_PHASE_IR_PHASEOPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Phase_Dialect : Dialect {
  let name = "phase";
  let cppNamespace = "::sandwich::phase";
  let summary = "Phases as SPMD programs";
  let description = [{
    A phase program is a function that every thread of a team runs on the same
    buffers. `phase.program` on the function records its team and limits; its
    arguments are fixed (see `sandwich::phase::ProgramArgument`).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

def Phase_ProgramAttr : AttrDef<Phase_Dialect, "Program"> {
  let mnemonic = "program";
  let summary = "The team and the limits of a phase program";
  let description = [{
    Constraints: (C1) `threads` is between 1 and 1024, `max_tokens` and
    `max_logit_rows` between 1 and 65536, `workspace_bytes` not negative;
    (C2) it is `phase.program` on a function of one block with the arguments of
    a phase program.
  }];
  let parameters = (ins "int64_t":$threads, "int64_t":$maxTokens,
                        "int64_t":$maxLogitRows, "int64_t":$workspaceBytes);
  let assemblyFormat = [{
    `<` `threads` `=` $threads `,` `max_tokens` `=` $maxTokens `,`
        `max_logit_rows` `=` $maxLogitRows `,`
        `workspace_bytes` `=` $workspaceBytes `>`
  }];
  let genVerifyDecl = 1;
}

def Phase_TeamType : TypeDef<Phase_Dialect, "Team"> {
  let mnemonic = "team";
  let summary = "The threads that run a phase together";
}

def Phase_BarrierOp : Op<Phase_Dialect, "barrier"> {
  let summary = "Waits for every thread of the team";
  let description = [{
    What threads wrote before is visible to all of them after. Has unknown
    memory effects, so nothing moves across it.
  }];
  let arguments = (ins Phase_TeamType:$team);
  let assemblyFormat = "$team attr-dict";
}

#endif // SANDWICH_DIALECT_PHASE_IR_PHASEOPS_TD
