// RUN: sandwich-opt %s -strip-model | FileCheck %s

// What describes the model and is not code goes; code and other attributes stay.

// CHECK-NOT: lm.weight
lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-NOT: lm.sampling
lm.sampling 64

// CHECK: func @decode({{.*}}) attributes {llvm.emit_c_interface} {
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {llvm.emit_c_interface, lm.phase = #lm.phase<decode>,
                phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  // CHECK: memref.load
  %c0 = arith.constant 0 : index
  %0 = memref.load %ids[%c0] : memref<?xi32>
  return
}
