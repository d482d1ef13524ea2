// RUN: sandwich-opt %s -phase-to-llvm | FileCheck %s --implicit-check-not='@decode('

// Programs that compute the same are one, whatever their limits: the entry point
// of the second calls the first. Each has its plan.
// CHECK: llvm.mlir.global external constant @sandwich_prefill_plan(dense<[7, 2, 16,
// CHECK: func.func @sandwich_prefill(
// CHECK: call @prefill(
// CHECK: func.func private @prefill(
// CHECK: llvm.mlir.global external constant @sandwich_decode_plan(dense<[7, 2, 8,
// CHECK: func.func @sandwich_decode(
// CHECK: call @prefill(
// CHECK-NOT: func.func private
func.func @prefill(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  phase.barrier %team
  return
}
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 8, max_logit_rows = 8, workspace_bytes = 8192>} {
  phase.barrier %team
  return
}

// One that computes something else stays.
// CHECK: func.func @sandwich_other(
// CHECK: call @other(
// CHECK: func.func private @other(
func.func @other(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  phase.barrier %team
  phase.barrier %team
  return
}
