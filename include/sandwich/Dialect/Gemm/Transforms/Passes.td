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

def PackWeights : Pass<"gemm-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Choose the packing of each weight from its schedules";
  let description = [{
    Every weight that a matmul multiplies gets the one packing that the
    micro-kernels of all its schedules read. Schedules that would need two
    packings of one weight are an error: there is one copy.
  }];
}

def ScheduleMatmuls : Pass<"gemm-schedule", "::mlir::ModuleOp"> {
  let summary = "Give every matmul a schedule table";
  let description = [{
    Matmuls that have no schedules get the best that tuning on this machine left
    in the database, with the packing of the weight that they were tuned for, or
    else those of the cost model (see docs/RationaleScheduling.md); those that
    have some keep them, if they need no more threads than the team has. Where
    micro-kernels read bf16, the operation that makes the matmul's input then
    makes it in bf16.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"",
           "CPU to schedule for: a name, or host">,
    Option<"threads", "threads", "int64_t", "1",
           "Threads of the team">,
    Option<"database", "database", "std::string", "\"\"",
           "File with tuned schedules">
  ];
  let statistics = [
    Statistic<"numTuned", "num-tuned", "Matmuls whose schedules were tuned">
  ];
}

#endif // SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_TD
