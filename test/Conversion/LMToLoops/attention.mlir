// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 | FileCheck %s
// RUN: sandwich-opt %s "-lm-to-loops=target=x86-64-avx2" | FileCheck %s --check-prefix=NARROW
// RUN: not sandwich-opt %s "-lm-to-loops=target=sparc" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}sparc

// Segments follow each other: those of several tokens are computed in one way, and
// then those of one token in another. One schedule serves all steps: nothing asks
// how many segments there are, or how long their contexts.

// CHECK-LABEL: func @attention
// CHECK-DAG: memref.alloca() {{.*}} : memref<2x2x64xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<1x12x64xf32>
// CHECK: %[[COUNT:.*]] = memref.dim %[[SEGMENTS:arg3]], %{{.*}} : memref<?x4xi32>
// CHECK-NOT: arith.cmpi
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]]
// CHECK-COUNT-4: memref.load %[[SEGMENTS]][%[[NUMBER]], %{{.*}}] : memref<?x4xi32>
// CHECK: %[[SEVERAL:.*]] = arith.cmpi ne
// CHECK-NEXT: scf.if %[[SEVERAL]] {

// Tiles of twelve rows, those of each token's two query heads that share a head of
// the cache, by two blocks of keys, or by two vectors of values.

// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK-NOT: memref.prefetch
// CHECK: math.exp
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK-NOT: memref.prefetch
// With the registers of AVX2: tiles of six, by one block or one vector.
// NARROW-LABEL: func @attention
// NARROW: arith.cmpi ne
// NARROW-NEXT: scf.if
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW: math.exp
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {

// The work of all segments of one token is summed up, and the thread has its share.

// CHECK: %[[WORK:.*]] = scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (index) {
// CHECK-COUNT-4: memref.load %[[SEGMENTS]][%[[NUMBER]], %{{.*}}] : memref<?x4xi32>
// CHECK: %[[ISONE:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[COUNTED:.*]] = arith.select %[[ISONE]]
// CHECK-NEXT: arith.addi %[[BEFORE]], %[[COUNTED]]
// CHECK: arith.muli %arg10, %[[WORK]]
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args
// CHECK-COUNT-4: memref.load %[[SEGMENTS]][%[[NUMBER]], %{{.*}}] : memref<?x4xi32>

// The two query heads that share a head of the cache are one tile, by two blocks
// in two parts of each score, and by all four vectors of values. Both are
// prefetched once, while the head before is read.

// Chunks of two blocks, and in each all heads of the thread, whose sums are kept.
// CHECK: %[[HASWORK:.*]] = arith.cmpi ult, %[[FIRST:[0-9]+]], %[[END:[0-9]+]] : index
// CHECK-NEXT: scf.if %[[HASWORK]] {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2{{(_[0-9]+)?}} {
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %{{.*}}, %[[END]]
// CHECK: %[[NEXT:.*]] = arith.select %[[LAST]], %[[FIRST]], %{{.*}}
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK: vector.load %{{.*}}[%{{.*}}, %{{.*}}, %[[HEAD:arg[0-9]+]], %{{.*}}, %{{.*}}] : memref<?x2x2x2x1024xf16>, vector<16xf16>
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}, %[[NEXT]], %c0{{(_[0-9]+)?}}, %{{.*}}], read, locality<3>, data
// Positions that a token does not attend to are masked before the maximum.
// CHECK: arith.cmpi slt
// CHECK: arith.select
// CHECK-COUNT-4: vector.shuffle
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}, %[[NEXT]], %c1{{(_[0-9]+)?}}, %{{.*}}], read, locality<3>, data
// Two tokens at once, and an odd one.
// CHECK: scf.yield
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for {{.*}} step %[[ONE]] iter_args
// CHECK-NOT: lm.attention
// With the registers of AVX2: one part, and two vectors of values.
// NARROW: arith.cmpi eq
// NARROW-NEXT: arith.select
// NARROW: arith.cmpi ult
// NARROW-NEXT: scf.if
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW: math.exp
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
func.func @attention(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}

// Attention to other layers uses the same memory of the stack.
// CHECK-LABEL: func @unrolled
// CHECK-COUNT-14: memref.alloca
// CHECK-NOT: memref.alloca
// CHECK: return
func.func @unrolled(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c0] segments %segments blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}

// A schedule that splits contexts, for steps of one segment, by the longest context:
// each is as long as the segment's first position and its tokens.

// CHECK-LABEL: func @split
// CHECK: %[[COUNT:.*]] = memref.dim %[[SEGMENTS:arg3]], %{{.*}} : memref<?x4xi32>
// CHECK: %[[LONGEST:.*]] = scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[SOFAR:.*]] = %{{.*}}) -> (index) {
// CHECK: %[[POSITIONS:.*]] = arith.addi
// CHECK-NEXT: %[[LARGER:.*]] = arith.maxui %[[POSITIONS]], %[[SOFAR]]
// CHECK-NEXT: scf.yield %[[LARGER]] : index
// CHECK-NEXT: }

// All prefill schedules are alike: there is one copy, and nothing is asked before.
// CHECK-NOT: arith.cmpi ule
// CHECK: arith.cmpi ne
// CHECK-NEXT: scf.if

// The first entry serves one segment with at most 128 positions.
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[COUNT]], %c1{{(_[0-9]+)?}} : index
// CHECK: %[[SHORT:.*]] = arith.cmpi ule, %[[LONGEST]], %c128{{(_[0-9]+)?}} : index
// CHECK-NEXT: %[[SERVES:.*]] = arith.andi %[[FEW]], %[[SHORT]]
// CHECK-NEXT: scf.if %[[SERVES]] {
// CHECK-NOT: phase.barrier
// CHECK: arith.cmpi eq
// CHECK-NOT: phase.barrier
// CHECK: } else {

// The second one does so with longer contexts, in three parts: for each of four
// query heads, a sum of 64 channels, the largest score and the sum of exponentials,
// in 3 * 4 * (64 + 2) * 4 bytes.
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[COUNT]], %c1{{(_[0-9]+)?}} : index
// CHECK-NEXT: scf.if %[[FEW]] {
// CHECK-NOT: phase.barrier
// CHECK: %[[SUMS:.*]] = memref.view %[[MEMORY:.*]][%{{.*}}][] : memref<3200xi8> to memref<3x4x64xf32>
// CHECK: %[[OFFSET:.*]] = arith.constant 3072 : index
// CHECK-NEXT: %[[SCALES:.*]] = memref.view %[[MEMORY]][%[[OFFSET]]][] : memref<3200xi8> to memref<3x4x2xf32>
// Each part has its blocks of the context, and its heads are dealt to the threads.
// CHECK: scf.for {{.*}} -> (index) {
// CHECK: arith.muli %arg10, %{{.*}}
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args
// CHECK: %[[ISONE:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[PARTS:.*]] = arith.select %[[ISONE]], %c3{{(_[0-9]+)?}}, %{{.*}} : index
// CHECK: scf.for %[[PART:.*]] = %{{.*}} to %[[PARTS]] step
// CHECK: %[[PLACE:.*]] = arith.muli %[[NUMBER]], %{{.*}}
// CHECK-NEXT: %[[ITEM:.*]] = arith.addi %[[PLACE]], %[[PART]]
// CHECK: arith.cmpi ult
// CHECK-NEXT: scf.if
// Its state is stored, and no result.
// CHECK: memref.store %{{.*}}, %[[SCALES]][%[[ITEM]], %[[HEAD:.*]], %{{.*}}] : memref<3x4x2xf32>
// CHECK: memref.store %{{.*}}, %[[SCALES]][%[[ITEM]], %[[HEAD]], %{{.*}}] : memref<3x4x2xf32>
// CHECK-NOT: arith.divf
// CHECK: vector.store %{{.*}}, %[[SUMS]][%[[ITEM]], %[[HEAD]], %{{.*}}] : memref<3x4x64xf32>
// CHECK-NOT: arith.divf
// All threads meet, and add up the parts of their query heads.
// CHECK: phase.barrier %arg11
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: arith.cmpi eq
// CHECK-NEXT: scf.if
// CHECK: memref.load %[[SCALES]]
// CHECK: %[[LARGEST:.*]] = scf.for {{.*}} -> (f32) {
// CHECK: %[[TOTAL:.*]] = scf.for {{.*}} -> (vector<16xf32>) {
// CHECK: arith.subf %{{.*}}, %[[LARGEST]] : f32
// CHECK: math.exp
// CHECK: vector.fma
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (vector<16xf32>) {
// CHECK: math.exp
// CHECK: vector.load %[[SUMS]]
// CHECK: vector.fma
// CHECK: arith.divf %[[SUM]], %[[TOTAL]] : vector<16xf32>
// CHECK: vector.store

// The last one is for all others; there is no third question.
// CHECK: } else {
// CHECK-NOT: arith.cmpi ule
// CHECK-NOT: phase.barrier
// CHECK: return
func.func @split(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  %sums = memref.view %workspace[%c0][] : memref<?xi8> to memref<3200xi8>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125
    schedules(<[1, 128] : <decode = [2, 2, 2], split = 1, prefill = [4, 1, 1]>,
               [1, ?] : <decode = [2, 2, 2], split = 3, prefill = [4, 1, 1]>,
               [?, ?] : <decode = [2, 2, 2], split = 1, prefill = [4, 1, 1]>>)
    partial_sums(%sums : memref<3200xi8>)
    into %q : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}

// Entries that differ in prefill alone share the code of decode, which asks nothing.

// CHECK-LABEL: func @prefill_differs
// CHECK-NOT: arith.maxui
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %{{.*}}, %c3{{(_[0-9]+)?}} : index
// CHECK-NEXT: scf.if %[[FEW]] {
// CHECK: arith.cmpi ne, {{.*}} : index
// CHECK: } else {
// CHECK: arith.cmpi ne, {{.*}} : index
// CHECK-NOT: arith.cmpi ule
// CHECK: arith.muli %arg10, %{{.*}}
// CHECK-NOT: arith.cmpi ule
// CHECK-NOT: arith.muli %arg10, %{{.*}}
// CHECK: return
func.func @prefill_differs(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125
    schedules(<[3, ?] : <decode = [1, 1, 1], split = 1, prefill = [2, 1, 1]>,
               [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [4, 1, 1]>>)
    into %q : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}

// Entries in the middle that the next one would serve in the same way are none, but
// an entry is kept where the next one does not serve all of its steps.

// CHECK-LABEL: func @repeats
// CHECK: arith.maxui
// CHECK-NOT: arith.cmpi ule
// CHECK: arith.cmpi ne
// CHECK: arith.cmpi ule, %{{.*}}, %c4{{(_[0-9]+)?}} : index
// CHECK: arith.cmpi ule, %{{.*}}, %c64{{(_[0-9]+)?}} : index
// CHECK: arith.cmpi ule, %{{.*}}, %c2{{(_[0-9]+)?}} : index
// CHECK-NEXT: scf.if
// CHECK-NOT: arith.cmpi ule
// CHECK: return
func.func @repeats(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125
    schedules(<[1, 64] : <decode = [2, 1, 1], split = 1, prefill = [2, 1, 1]>,
               [4, 64] : <decode = [2, 1, 1], split = 1, prefill = [2, 1, 1]>,
               [2, ?] : <decode = [2, 1, 1], split = 1, prefill = [2, 1, 1]>,
               [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [2, 1, 1]>>)
    into %q : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}
