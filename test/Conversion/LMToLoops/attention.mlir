// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 | FileCheck %s
// RUN: sandwich-opt %s "-lm-to-loops=target=x86-64-avx2" | FileCheck %s --check-prefix=NARROW
// RUN: not sandwich-opt %s "-lm-to-loops=target=sparc" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}sparc

// The two query heads that share a head of the cache are one tile, by two blocks
// in two parts of each score, and by all four vectors of values. Both are
// prefetched twice: the tile's values, the next head's keys, and once more these
// and its values.

// CHECK-LABEL: func @decode
// Chunks of two blocks, and in each all heads of the thread, whose sums are kept.
// CHECK: memref.alloca() {{.*}} : memref<1x2x64xf32>
// CHECK: arith.constant 15 : index
// CHECK: arith.divui
// CHECK-NEXT: %[[CHUNK:.*]] = arith.constant 2 : index
// CHECK-NEXT: scf.for {{.*}} step %[[CHUNK]] {
// CHECK: scf.for %{{.*}} = %[[FIRST:[0-9]+]] to %[[END:[0-9]+]] step
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %{{.*}}, %[[END]]
// CHECK: %[[NEXT:.*]] = arith.select %[[LAST]], %[[FIRST]], %{{.*}}
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK: vector.load %{{.*}}[%{{.*}}, %{{.*}}, %[[HEAD:arg[0-9]+]], %{{.*}}, %{{.*}}] : memref<?x2x2x2x1024xf16>, vector<16xf16>
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}, %[[HEAD]], %{{.*}}, %{{.*}}], read, locality<3>, data
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}}, %{{.*}}], read, locality<3>, data
// Positions that a token does not attend to are masked before the maximum.
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK-COUNT-4: vector.shuffle
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK: %[[KEYS:.*]] = arith.constant 0 : index
// CHECK-NEXT: memref.prefetch %{{.*}}[%[[BLOCK:.*]], %{{.*}}, %[[NEXT]], %[[KEYS]], %[[PLACE:.*]]]
// CHECK: %[[VALUES:.*]] = arith.constant 1 : index
// CHECK-NEXT: memref.prefetch %{{.*}}[%[[BLOCK]], %{{.*}}, %[[NEXT]], %[[VALUES]], %[[PLACE]]]
// Two tokens at once, and an odd one.
// CHECK: scf.yield
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for {{.*}} step %[[ONE]] iter_args
// CHECK-NOT: lm.attention
// With the registers of AVX2: one part, and two vectors of values.
// NARROW-LABEL: func @decode
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW: math.exp
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
func.func @decode(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %block_tables: memref<?x?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {lm.phase = #lm.phase<decode>, phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] positions %positions sequences %sequences blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?xi32>, memref<?xi32>, blocks memref<?x?xi32> into memref<?x256xbf16>
  return
}

// Tiles of twelve tokens by two blocks of keys, or by two vectors of values.

// CHECK-LABEL: func @prefill
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK-NOT: memref.prefetch
// CHECK: math.exp
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW-LABEL: func @prefill
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW: math.exp
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
func.func @prefill(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %block_tables: memref<?x?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {lm.phase = #lm.phase<prefill>, phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] positions %positions sequences %sequences blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?xi32>, memref<?xi32>, blocks memref<?x?xi32> into memref<?x256xbf16>
  return
}

// Attention to other layers uses the same memory of the stack.
// CHECK-LABEL: func @unrolled
// CHECK-COUNT-8: memref.alloca
// CHECK-NOT: memref.alloca
// CHECK: return
func.func @unrolled(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %block_tables: memref<?x?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {lm.phase = #lm.phase<decode>, phase.program = #phase.program<threads = 2, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c0] positions %positions sequences %sequences blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?xi32>, memref<?xi32>, blocks memref<?x?xi32> into memref<?x256xbf16>
  lm.attention %q, %cache[%c1] positions %positions sequences %sequences blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?xi32>, memref<?xi32>, blocks memref<?x?xi32> into memref<?x256xbf16>
  return
}
