// RUN: sandwich-opt %s -gemm-to-loops | FileCheck %s
// RUN: sed 's|// MODULE: ||' %s | sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=SAME

// Ranks that add up a residual with their sums add it in turn, row by row. Where
// the place of a row is to change nothing, the first rank adds all of it.

// SAME: %[[RANK:.*]] = phase.rank
// SAME-NOT: arith.remui
// SAME: arith.cmpi eq, %c0{{[_0-9]*}}, %[[RANK]]

// MODULE: module attributes {lm.deterministic} {

lm.weight @w : tensor<64x32xf32> from ["w"] shard <columns, ranks = 2> at 0
// CHECK-LABEL: func @decode(
// CHECK-SAME: %[[LOGITS:[a-z0-9]+]]: memref<?x64xf32>
// CHECK-SAME: %[[TEAM:[a-z0-9]+]]: !phase.team)
// CHECK: %[[SUMS:.*]] = memref.view
// CHECK: %[[RANK:.*]] = phase.rank %[[TEAM]]
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[ROW:.*]] = arith.addi %[[I]], %{{.*}}
// CHECK: %[[TURN:.*]] = arith.remui %[[ROW]], %c2{{$|_| }}
// CHECK: %[[OWN:.*]] = arith.cmpi eq, %[[TURN]], %[[RANK]]
// CHECK: scf.if %[[OWN]] {
// CHECK: %[[SUM:.*]] = vector.load %[[SUMS]]
// CHECK: %[[X:.*]] = vector.load %[[LOGITS]]
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[SUM]]
// CHECK: vector.store %[[Y]], %[[LOGITS]]
// CHECK: } else {
// CHECK: %[[SUM:.*]] = vector.load %[[SUMS]]
// CHECK-NOT: vector.load
// CHECK: vector.store %[[SUM]], %[[LOGITS]]
func.func @decode(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %sums = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  gemm.epilogue %sums at(%c32, %c0) size(%tokens, %c32) epilogue(<add_residual>) residual(%logits : memref<?x64xf32> among 2) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
// MODULE: }
