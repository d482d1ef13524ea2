//===- Passes.td - Passes of no single dialect -------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TRANSFORMS_PASSES_TD
#define SANDWICH_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignBuffers : Pass<"phase-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Turn phases into programs over buffers";
  let description = [{
    A function with `lm.phase` becomes a phase program (`phase.program`): its
    tensors become views of one workspace that the team shares, at static
    offsets for the largest step, reused as soon as a value is dead. A matmul
    that adds a residual nothing else needs writes into the residual's buffer;
    so must one at the end of a loop, whose tensor stays in one place.

    ```mlir
    %n = lm.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32> -> tensor<?x64xbf16>
    // becomes
    %view = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x96xbf16>
    %n = memref.subview %view[0, 0] [%tokens, 64] [1, 1] : ...
    lm.rms_norm %x, @norm epsilon 1.0e-05 into %n : ...
    ```

    Rows are padded by a cache line, so that equal columns of neighbouring rows
    do not fall into the same cache set; those that ranks exchange are not.
    `lm.all_reduce` works in place. What phases must be for that, and is not an
    error here, `lm-verify-phases` has checked.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::sandwich::phase::PhaseDialect"];
  let options = [
    Option<"threads", "threads", "int64_t", "1", "Threads of the team">,
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "Tokens of the largest step">,
    Option<"maxLogitRows", "max-logit-rows", "int64_t", "512",
           "Rows of logits of the largest step">
  ];
}

def InsertBarriers : Pass<"phase-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "Separate operations whose data crosses threads";
  let description = [{
    In a phase program, puts a `phase.barrier` before an operation that reads
    or overwrites memory another thread may have written, or overwrites what
    another thread may still read. Operations that split the same rows the same
    way keep their data on the same thread and need none. Operations are
    separated in straight code and `scf.for`; any other operation that holds
    some is an error.
  }];
  let dependentDialects = ["::sandwich::phase::PhaseDialect"];
  let statistics = [
    Statistic<"numBarriers", "num-barriers", "Number of barriers inserted">
  ];
}

def InsertMarks : Pass<"phase-insert-marks", "::mlir::ModuleOp"> {
  let summary = "Mark where the time of a step goes";
  let description = [{
    In a phase program, puts a `phase.mark` after each operation of `lm` and
    `gemm` and after each barrier that has none yet. It is named after the
    operation, its weight and the weight's shape, and tells its costs. Barriers
    are named after what came before them, in which other threads were slower,
    and what ranks exchange after the weight that it was made with.

    ```mlir
    gemm.matmul %x, @head epilogue(<none>) into %logits : memref<?x64xbf16> into memref<?x320xf32>
    phase.mark %team, "matmul head 320x64" {bytes = 40960 : i64, flops_per_logit_row = 40960 : i64}
    ```
  }];
  let dependentDialects = ["::sandwich::phase::PhaseDialect"];
}

def PlaceWeights : Pass<"lm-place-weights", "::mlir::ModuleOp"> {
  let summary = "Decide where the artifact stores each weight";
  let description = [{
    Removes weights nothing refers to, and gives the others their offsets in
    the artifact, in order. Matrices begin on a page, vectors on a cache line.
    Weights in shards come after the others, at the next multiple of 2 MiB:
    there lies a rank's shard, however many ranks there are.
  }];
}

def StripModel : Pass<"strip-model", "::mlir::ModuleOp"> {
  let summary = "Remove what describes the model and is not code";
  let description = [{
    Erases every `lm.weight`, and the attributes of phases and phase programs,
    once all operations that refer to them are lowered: LLVM IR has no place
    for them. A weight that is still referred to is an error.
  }];
}

def VerifyPhases : Pass<"lm-verify-phases", "::mlir::ModuleOp"> {
  let summary = "Refuse models whose code would not be safe to run";
  let description = [{
    Model IR and schedule IR may come from anywhere, and nothing after it would
    notice what is wrong: the code checks no token id and no layer, and ranks
    do not compare what they have. Changes nothing; what is not so is an error
    at the operation:

    * A module holds weights and functions with `lm.phase`, which take and
      return what the runtime prepares. In them are operations of `lm`,
      `gemm.matmul`, loops (`scf.for`) and constants of type `index`, without
      attributes of other dialects: what they do is known, and nothing else
      becomes code.
    * A loop counts layers, from 0 to at most as many as a weight may have, and
      is in no other.
    * A layer is counted by a loop from 0 to at most the layers of the weights
      and of the cache that it is looked up in, or a constant below that.
    * Attention keeps at most 1 MiB on the stack of a thread, counted for all
      heads of a token.
    * Operations take token ids, positions, cache slots, segments, block tables,
      rows and cache from the arguments of their phase: the runtime vouches for
      those only.
    * An embedding of token ids has a row for each token of the vocabulary, which
      are as many as the logits' channels; of phases that return something else,
      and of other tables, the program says how many rows there are.
    * Segments become rows only where a phase returns one of each.
    * Ranks have whole embeddings and norms, and their shard of a bias where they
      have one of the weight.
    * What is a part of a sum over the ranks (a matmul by columns, dealt rows,
      sums of them) is summed by `lm.all_reduce` before anything else reads it.

    Modules that have functions, all of them phase programs, are past that level
    and are left alone.
  }];
}

#endif // SANDWICH_TRANSFORMS_PASSES_TD
