// RUN: sandwich-opt %s -lm-verify-phases -phase-assign-buffers="threads=2 max-tokens=16 max-logit-rows=4" | FileCheck %s

// A phase that encodes returns a row for each segment, looks up types that it is
// given behind all else, and its layers share the cache of one. The program
// tells how many rows each table has; of positions, those from the first one on.

lm.weight @words : tensor<320x32xf32> from ["w"]
lm.weight @types : tensor<2x32xf32> from ["t"]
lm.weight @positions : tensor<66x32xf32> from ["p"]

// CHECK-LABEL: func @embed(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>, %[[POSITIONS:[a-z0-9]+]]: memref<?xi32>, %[[SLOTS:[a-z0-9]+]]: memref<?xi32>, %[[SEGMENTS:[a-z0-9]+]]: memref<?x4xi32>,
// CHECK-SAME: %[[LOGITS:[a-z0-9]+]]: memref<?x32xf32>
// CHECK-SAME: %{{[a-z0-9]+}}: !phase.team, %[[TYPES:[a-z0-9]+]]: memref<?xi32>)
// CHECK-SAME: lm.phase = #lm.phase<embed>
// CHECK-SAME: phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 4, workspace_bytes = {{[0-9]+}}, tables = [320, 2, 64]>
// CHECK: lm.embed %[[IDS]], @words into %[[X:.*]] : memref<?xi32>
// CHECK: lm.embed %[[POSITIONS]], @positions of <positions> offset 2 into %[[P:.*]] : memref<?xi32>
// CHECK: lm.embed %[[TYPES]], @types of <token_types> into
// CHECK: scf.for
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: lm.append_kv %{{.*}}, %{{.*}} to %{{.*}}[%[[ZERO]]] slots %[[SLOTS]]
// CHECK: lm.pool %{{.*}}, %[[SEGMENTS]] <mean> into %[[POOLED:.*]] :
// CHECK: lm.l2_normalize %[[POOLED]] into %[[LOGITS]]
func.func @embed(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %types: tensor<?xi32>) -> tensor<?x32xf32> attributes {lm.phase = #lm.phase<embed>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %w = lm.embed %ids, @words : tensor<?xi32> -> tensor<?x32xf32>
  %p = lm.embed %positions, @positions of <positions> offset 2 : tensor<?xi32> -> tensor<?x32xf32>
  %wp = lm.add %w, %p : tensor<?x32xf32>
  %t = lm.embed %types, @types of <token_types> : tensor<?xi32> -> tensor<?x32xf32>
  %x = lm.add %wp, %t : tensor<?x32xf32>
  %y = scf.for %layer = %c0 to %c2 step %c1 iter_args(%r = %x) -> tensor<?x32xf32> {
    %only = arith.constant 0 : index
    lm.append_kv %r, %r to %cache[%only] slots %slots : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?xi32>
    %a = lm.attention %r, %cache[%only] segments %segments blocks %blocks scale 0.125 bidirectional : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
    %sum = lm.add %r, %a : tensor<?x32xf32>
    scf.yield %sum : tensor<?x32xf32>
  }
  %pooled = lm.pool %y, %segments <mean> : tensor<?x32xf32>, tensor<?x4xi32> -> tensor<?x32xf32>
  %unit = lm.l2_normalize %pooled : tensor<?x32xf32>
  return %unit : tensor<?x32xf32>
}
