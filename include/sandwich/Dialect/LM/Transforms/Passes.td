//===- Passes.td - Passes of lm -----------------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_TRANSFORMS_PASSES_TD
#define SANDWICH_DIALECT_LM_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Partition : Pass<"lm-partition", "::mlir::ModuleOp"> {
  let summary = "Turn a model into the program of one rank of several";
  let description = [{
    Divides the functions with `lm.phase` among the ranks of a tensor-parallel
    group. All ranks run the result, each on its own shard of the weights:

    * What makes queries, keys, values, gates and up projections is divided by
      rows, in whole heads, with its bias; the cache holds the rank's KV heads.
    * What reads the result of attention or `lm.silu_mul` is divided by columns
      and followed by `lm.all_reduce`; of its bias only the first rank's counts.
      A residual that is added to the result is added before: each rank adds
      its own rows (`lm.deal_rows`).
    * What makes the logits is divided by rows, and `lm.all_gather` follows.
    * The embedding and norms stay whole. Where a weight is needed whole and in
      shards (a tied output head), there will be two.

    ```mlir
    %o = lm.linear %attention, @o_proj[%layer] : tensor<?x64xf32> -> tensor<?x64xf32>
    // becomes, with two ranks,
    %part = lm.linear %attention, @o_proj[%layer] : tensor<?x32xf32> -> tensor<?x64xf32>
    %o = lm.all_reduce %part : tensor<?x64xf32> -> tensor<?x64xf32>
    ```

    A model whose heads, KV heads, intermediate size or vocabulary the ranks do
    not divide is an error, as is one that is divided already. One rank changes
    nothing.
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", "1", "Ranks of the group">
  ];
}

def ScheduleAttention : Pass<"lm-schedule-attention", "::mlir::ModuleOp"> {
  let summary = "Give attention its schedules";
  let description = [{
    Attention that has no schedules gets those that tuning found for it on this
    machine, if they are in the schedule database, and else those of a rule: as
    many queries at a time as the target's registers hold, and as few parts of
    contexts as keep the team's threads busy. Attention that has some keeps them. In buffer form
    it stays as it is, as memory has been assigned.

    ```mlir
    %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 0.125 : ...
    // becomes, for one head and two threads,
    %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 0.125
        schedules(<[1, 128] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>,
                   [1, ?] : <decode = [1, 2, 2], split = 2, prefill = [12, 2, 8]>,
                   [?, ?] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>>) : ...
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to schedule for: a name, or host">,
    Option<"threads", "threads", "int64_t", "1",
           "Threads of the team">,
    Option<"database", "database", "std::string", "\"\"",
           "Schedule database: tuned schedules are taken from it">
  ];
}

def UseKernels : Pass<"lm-use-kernels", "::mlir::ModuleOp"> {
  let summary = "Let kernels compute operations";
  let description = [{
    Every operation of a name for which there is a file with a kernel of the high
    level is computed by it from now on. The kernel is read for the types that the
    operation has, and checked to take what that gives: rows `[rows, channels]`,
    vectors `[channels]` and numbers, in the order of the operation's operands, with
    the result behind them. Operations that have a kernel keep it.

    ```mlir
    %y = lm.silu_mul %gate, %up : tensor<?x256xf32>
    // becomes, with silu_mul=silu_mul.kernel,
    module @kernels {
      func.func @silu_mul(...) attributes {block.parameters = ...} { ... }
    }
    ...
    %y = lm.silu_mul %gate, %up {lm.kernel = #lm.kernel<@kernels::@silu_mul>} : tensor<?x256xf32>
    ```
  }];
  let options = [
    ListOption<"kernels", "kernels", "std::string",
               "Files with kernels: OPERATION=FILE, as rms_norm=norm.kernel">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::sandwich::block::BlockDialect"
  ];
}

#endif // SANDWICH_DIALECT_LM_TRANSFORMS_PASSES_TD
