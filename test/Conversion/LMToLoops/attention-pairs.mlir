// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 -canonicalize -cse | FileCheck %s

// Channels of bf16 lie in pairs. Even and odd ones, which are a dimension of the
// kernel's, are loaded at once, and widened where they lie; of the twenty pairs of a
// head, sixteen at a time, those that are left behind a mask.

// CHECK-LABEL: func @attention
// CHECK: %[[KEYS:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3, d4) -> (d0, d1, d2, d4, d3) {{.*}} to memref<?x?x20x2x16xbf16, strided<[5120, 1280, 32, 1, 2], offset: ?>>
// CHECK: %[[VALUES:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3, d4) -> (d0, d1, d2, d4, d3) {{.*}} to memref<?x?x16x2x20xbf16, strided<[5120, 1280, 40, 1, 2], offset: ?>>
// CHECK: call @[[PREFILL:kernel.*.attention]](%{{.*}}, %[[KEYS]], %[[VALUES]],

// CHECK: func.func private @[[PREFILL]](%{{[^:]*}}: {{[^%]*}}%[[KEYS:arg1]]: {{[^%]*}}%[[VALUES:arg2]]:
// CHECK: %[[ASTHEYLIE:.*]] = memref.transpose %[[KEYS]] (d0, d1, d2, d3, d4) -> (d0, d1, d2, d4, d3)
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[ASTHEYLIE]] {{.*}} into memref<?x?x20x32xbf16,
// CHECK: %[[BOTH:.*]] = vector.load %[[FLAT]][%{{.*}}, %{{.*}}, %{{.*}}, %c0] : {{.*}}, vector<32xbf16>
// CHECK: %[[BITS:.*]] = vector.bitcast %[[BOTH]] : vector<32xbf16> to vector<16xi32>
// CHECK: arith.shli %[[BITS]]
// CHECK: arith.andi %[[BITS]]
// CHECK: memref.transpose %[[VALUES]]
// CHECK: vector.maskedload {{.*}} : memref<?x?x16x40xbf16, {{.*}} into vector<{{[0-9]+}}xbf16>
func.func @attention(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x640xbf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x160xf32>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125
    schedules(<[?, ?] : <decode = [2, 1, 1], split = 1, prefill = [2, 1, 1]>>) into %q
    : memref<?x160xf32>, memref<?x2x2x2x640xbf16>, memref<?x4xi32>, memref<?xi32> into memref<?x160xf32>
  return
}
