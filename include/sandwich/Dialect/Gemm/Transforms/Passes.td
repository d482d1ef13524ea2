//===- Passes.td - Passes of gemm --------------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_TD
#define SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Dispatch : Pass<"gemm-dispatch", "::mlir::ModuleOp"> {
  let summary = "Choose the schedule by the number of tokens";
  let description = [{
    Replaces a `gemm.matmul` of a phase program by a chain of conditions on the
    number of tokens, in each branch the matmul with the one schedule that
    serves so many. Schedules for more tokens than the program's largest step
    has, or outside of what `tokens_between` promises already, are dropped. All
    threads take the same branch.

    ```mlir
    gemm.matmul %x, @w epilogue(<none>) schedules(<12 : <...>, ? : <...>>) into %y : ...
    // becomes
    scf.if %at_most_12 {
      gemm.matmul %x, @w epilogue(<none>) schedules(<? : <...>>) tokens_between [0, 12] into %y : ...
    } else {
      gemm.matmul %x, @w epilogue(<none>) schedules(<? : <...>>) tokens_between [13, 512] into %y : ...
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def PackWeights : Pass<"gemm-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Choose the packing of each weight from its schedules";
  let description = [{
    Every weight that a matmul multiplies gets the one packing that the
    micro-kernels of all its schedules read. Schedules that would need two
    packings of one weight are an error: there is one copy. Quantized tables,
    which are only looked up, get panels of 16.
  }];
}

def Polymerize : Pass<"gemm-polymerize", "::mlir::ModuleOp"> {
  let summary = "Divide matmuls by their thread grids";
  let description = [{
    Replaces every `gemm.matmul` of a phase program whose one schedule does not
    split K by a `gemm.nest` of the rows and columns that its thread grid gives
    the thread, with a `gemm.epilogue` for each block of finished sums (the
    Sandwich paper's polymerization, section 5). Threads beyond the grid get no
    columns. A matmul with `parameters` has the parts of threads among them.

    ```mlir
    gemm.matmul %x, @w epilogue(<none>) schedules(<? : <..., threads = [1, 2, 1], ...>>) into %y : ...
    // becomes
    gemm.nest %x, %w rows(%c0 to %tokens) columns(%begin to %end) k(%c0 to %c2048) ... {
    ^bb0(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
      gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y : ...
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def ScheduleMatmuls : Pass<"gemm-schedule", "::mlir::ModuleOp"> {
  let summary = "Give every matmul a schedule table";
  let description = [{
    Matmuls that have no schedules get the best that tuning on this machine left
    in the database, with the packing of the weight that they were tuned for, or
    else those of the cost model (see docs/RationaleScheduling.md); those that
    have some keep them, if they need no more threads than the team has. Where
    micro-kernels read bf16, the operation that makes the matmul's input then
    makes it in bf16. With `activations=int8`, those of weights of integers
    round their input to int8, in groups as long as the weight's, where the CPU
    has instructions for integers.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to schedule for: a name, or host">,
    Option<"threads", "threads", "int64_t", "1",
           "Threads of the team">,
    Option<"database", "database", "std::string", "\"\"",
           "File with tuned schedules">,
    Option<"machineParameters", "machine-parameters", "std::string", "\"\"",
           "File with the speed of the machine's parts; without, that of no "
           "machine in particular">,
    Option<"activations", "activations", "std::string", "\"float\"",
           "What is multiplied with weights of integers: float, or, where there "
           "are instructions for it, int8">
  ];
  let statistics = [
    Statistic<"numTuned", "num-tuned", "Matmuls whose schedules were tuned">
  ];
}

def SplitK : Pass<"gemm-split-k", "::mlir::ModuleOp"> {
  let summary = "Let threads share the K of matmuls whose schedules say so";
  let description = [{
    Replaces every `gemm.matmul` of a phase program whose one schedule has more
    than one part of K: a `gemm.nest` of the thread's part writes its sums into
    the matmul's `partial_sums`, which are private to the part of K; after a
    barrier every thread adds up the parts of its share of the columns and
    applies the epilogue to them. Of a matmul with `parameters` the part is
    among them, the share is not. Other matmuls are left alone.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::sandwich::phase::PhaseDialect"
  ];
}

#endif // SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_TD
