//===- PhaseAttributes.td - Attributes and types of phase --*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_PHASE_IR_PHASEATTRIBUTES_TD
#define SANDWICH_DIALECT_PHASE_IR_PHASEATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "sandwich/Dialect/Phase/IR/PhaseDialect.td"

def Phase_ProgramAttr : AttrDef<Phase_Dialect, "Program"> {
  let mnemonic = "program";
  let summary = "The team and the limits of a phase program";
  let description = [{
    `tables` are the rows of what it looks up by token id, by token type and by
    position, which no index of a step may reach; 0 where it looks up nothing by
    that, and any may be. Without them, token ids are below the channels of the
    logits.

    Constraints: (C1) `threads` is between 1 and 1024, `max_tokens` and
    `max_logit_rows` between 1 and 65536, `workspace_bytes` not negative;
    (C2) it is `phase.program` on a function of one block with the arguments of
    a phase program; (C3) `tables` are three numbers between 0 and 2147483647.
  }];
  let parameters = (ins "int64_t":$threads, "int64_t":$maxTokens,
                        "int64_t":$maxLogitRows, "int64_t":$workspaceBytes,
                        OptionalArrayRefParameter<"int64_t">:$tables);
  let assemblyFormat = [{
    `<` `threads` `=` $threads `,` `max_tokens` `=` $maxTokens `,`
        `max_logit_rows` `=` $maxLogitRows `,`
        `workspace_bytes` `=` $workspaceBytes
        (`,` `tables` `=` `[` $tables^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

def Phase_TeamType : TypeDef<Phase_Dialect, "Team"> {
  let mnemonic = "team";
  let summary = "The threads that run a phase together";
}

#endif // SANDWICH_DIALECT_PHASE_IR_PHASEATTRIBUTES_TD
