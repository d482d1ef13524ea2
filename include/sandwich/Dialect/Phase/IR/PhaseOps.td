//===- PhaseOps.td - Operations of phase -------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_PHASE_IR_PHASEOPS_TD
#define SANDWICH_DIALECT_PHASE_IR_PHASEOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "sandwich/Dialect/Phase/IR/PhaseAttributes.td"

def Phase_BarrierOp : Op<Phase_Dialect, "barrier"> {
  let summary = "Waits for every thread of the team";
  let description = [{
    What threads wrote before is visible to all of them after. Has unknown
    memory effects, so nothing moves across it.
  }];
  let arguments = (ins Phase_TeamType:$team);
  let assemblyFormat = "$team attr-dict";
}

def Phase_MarkOp : Op<Phase_Dialect, "mark"> {
  let summary = "Ends what is timed as one operation";
  let description = [{
    Tells whoever profiles the step that the thread has finished `name`: the
    time since the thread's last mark, or since it entered the program, went
    into that. Marks that agree in name and costs are one operation, as are the
    iterations of a loop. Nobody profiling, a mark is a branch. Has unknown
    memory effects, so nothing moves across it.

    The costs are those of one call, where they are known: `bytes` of weights
    that are read and `bytes_per_position` of the cache, and floating-point
    operations for each token, for each row of logits, and for each pair of a
    token and a position it attends to.

    ```mlir
    phase.mark %team, "matmul head 32000x2048" {bytes = 131072000 : i64, flops_per_logit_row = 131072000 : i64}
    ```

    Constraints: (C1) the name is 1 to 1024 bytes long; (C2) no cost is
    negative.
  }];
  let arguments = (ins Phase_TeamType:$team, StrAttr:$name,
    DefaultValuedAttr<I64Attr, "0">:$bytes,
    DefaultValuedAttr<I64Attr, "0">:$bytes_per_position,
    DefaultValuedAttr<I64Attr, "0">:$flops_per_token,
    DefaultValuedAttr<I64Attr, "0">:$flops_per_logit_row,
    DefaultValuedAttr<I64Attr, "0">:$flops_per_attended);
  let assemblyFormat = "$team `,` $name attr-dict";
  let hasVerifier = 1;
}

def Phase_RankOp : Op<Phase_Dialect, "rank", [Pure]> {
  let summary = "Which of the ranks runs the program";
  let description = [{
    The number of the process among those that run the model together.

    ```mlir
    %rank = phase.rank %team
    ```
  }];
  let arguments = (ins Phase_TeamType:$team);
  let results = (outs Index:$rank);
  let assemblyFormat = "$team attr-dict";
}

/// f32 rows of a static number of channels, one behind the other.
def Phase_DenseRows : ConfinedType<MemRefRankOf<[F32], [2]>, [
    CPred<"::sandwich::phase::areDenseRows($_self)">],
    "memref of f32 rows of a static number of channels without gaps">;

def Phase_AllReduceOp : Op<Phase_Dialect, "all_reduce"> {
  let summary = "Adds up a buffer over all ranks";
  let description = [{
    Every thread of every rank runs it on its rank's buffer, which holds the
    sums once all threads of the rank have passed a barrier. Has unknown memory
    effects, so nothing moves across it.

    ```mlir
    phase.all_reduce %team, %partial : memref<?x2048xf32>
    ```
  }];
  let arguments = (ins Phase_TeamType:$team, Phase_DenseRows:$data);
  let assemblyFormat = "$team `,` $data attr-dict `:` type($data)";
}

def Phase_AllGatherOp : Op<Phase_Dialect, "all_gather"> {
  let summary = "Puts the channels of all ranks side by side";
  let description = [{
    Every thread of every rank runs it, as `phase.all_reduce`; rank r's `part`
    is put into the columns from r times its channels on of each rank's `whole`.

    ```mlir
    phase.all_gather %team, %part into %logits : memref<?x160xf32> into memref<?x320xf32>
    ```

    Constraints: (C1) the channels of `whole` are a multiple of those of `part`.
  }];
  let arguments = (ins Phase_TeamType:$team, Phase_DenseRows:$part,
                       Phase_DenseRows:$whole);
  let assemblyFormat = [{
    $team `,` $part `into` $whole attr-dict
    `:` type($part) `into` type($whole)
  }];
  let hasVerifier = 1;
}

#endif // SANDWICH_DIALECT_PHASE_IR_PHASEOPS_TD
