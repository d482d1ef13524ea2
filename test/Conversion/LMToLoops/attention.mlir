// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 | FileCheck %s
// RUN: sandwich-opt %s "-lm-to-loops=target=x86-64-avx2" | FileCheck %s --check-prefix=NARROW
// RUN: not sandwich-opt %s "-lm-to-loops=target=sparc" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}sparc

// Segments follow each other: those of several tokens are computed in one way, and
// then those of one token in another. One schedule serves all steps: nothing asks
// how many segments there are, or how long their contexts.

// CHECK-LABEL: func @attention
// CHECK: %[[COUNT:.*]] = memref.dim %[[SEGMENTS:arg3]], %{{.*}} : memref<?x4xi32>
// CHECK-NOT: arith.cmpi
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]]
// CHECK-COUNT-4: memref.load %[[SEGMENTS]][%[[NUMBER]], %{{.*}}] : memref<?x4xi32>
// CHECK: %[[SEVERAL:.*]] = arith.cmpi ne
// CHECK-NEXT: scf.if %[[SEVERAL]] {

// Some tokens, and a head of the cache that two query heads share: what lies there,
// and the blocks of the sequence.
// CHECK: %[[HEADS:.*]] = memref.expand_shape {{.*}} : memref<?x256xbf16> into memref<?x2x2x64xbf16>
// CHECK: memref.subview %[[HEADS]][%{{.*}}, %[[HEAD:.*]], 0, 0] [%{{.*}}, %{{.*}}, 2, 64]
// CHECK: memref.subview %arg6[0, %{{.*}}, %[[HEAD]], 0, 0] [%{{.*}}, 1, %{{.*}}, 1, 1024]
// CHECK: memref.subview %arg6[0, %{{.*}}, %[[HEAD]], 1, 0] [%{{.*}}, 1, %{{.*}}, 1, 1024]
// CHECK: memref.subview %arg4[%{{.*}}] [%{{.*}}] [1]
// CHECK: call @[[PREFILL:kernel.*.attention]](

// The work of all segments of one token is summed up, and the thread has its share.

// CHECK: %[[WORK:.*]] = scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (index) {
// CHECK-COUNT-4: memref.load %[[SEGMENTS]][%[[NUMBER]], %{{.*}}] : memref<?x4xi32>
// CHECK: %[[ISONE:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[COUNTED:.*]] = arith.select %[[ISONE]]
// CHECK-NEXT: arith.addi %[[BEFORE]], %[[COUNTED]]
// CHECK: arith.muli %arg10, %[[WORK]]
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args
// CHECK-COUNT-4: memref.load %[[SEGMENTS]][%[[NUMBER]], %{{.*}}] : memref<?x4xi32>
// CHECK: %[[HASWORK:.*]] = arith.cmpi ult, %[[FIRST:[0-9]+]], %[[END:[0-9]+]] : index
// CHECK-NEXT: scf.if %[[HASWORK]] {
// CHECK: memref.subview %arg6[0, %{{.*}}, %[[FIRST]], 0, 0]
// CHECK: call @[[DECODE:kernel.*.attention]](
// CHECK-NOT: lm.attention

// With the registers of AVX2 as well.
// NARROW-LABEL: func @attention
// NARROW: call @[[PREFILL:kernel.*.attention]](
// NARROW: call @[[DECODE:kernel.*.attention]](

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

// Attention to other layers is the same code.
// CHECK-LABEL: func @unrolled
// CHECK: call @[[PREFILL]](
// CHECK: call @[[DECODE]](
// CHECK: call @[[PREFILL]](
// CHECK: call @[[DECODE]](
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
// CHECK: %[[SUMS:.*]] = memref.view %{{.*}}[%{{.*}}][] : memref<3200xi8> to memref<3x4x66xf32>
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
// CHECK: %[[ROWS:.*]] = memref.expand_shape %[[SUMS]] {{.*}} into memref<3x2x2x66xf32>
// CHECK: memref.subview %[[ROWS]][%[[ITEM]], %{{.*}}, 0, 0] [1, %{{.*}}, 2, 66]
// CHECK: call @[[PARTIAL:kernel.*.attention]](
// All threads meet, and add up the parts of their query heads.
// CHECK: phase.barrier %arg11
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: arith.cmpi eq
// CHECK-NEXT: scf.if
// CHECK: memref.subview %[[SUMS]][%{{.*}}, %[[FIRST:.*]], 0] [3, %{{.*}}, 66]
// CHECK: memref.subview %{{.*}}[%{{.*}}, %[[FIRST]], 0] [1, %{{.*}}, 64]
// CHECK: call @kernel.{{[0-9]+}}.merge_attention(

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

// Tiles of twelve rows, those of each token's two query heads that share a head of
// the cache, by two blocks of keys, or by two vectors of values.

// CHECK: func.func private @[[PREFILL]](
// CHECK: memref.alloca() {{.*}} : memref<1x12x64xf32>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK-NOT: memref.prefetch
// CHECK: math.exp
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>) {
// CHECK-NOT: memref.prefetch
// CHECK: return

// The two query heads are one tile, by two blocks in two parts of each score, and by
// all four vectors of values. Both are prefetched, while the head before is read.
// CHECK: func.func private @[[DECODE]](
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK: memref.prefetch %arg1[
// CHECK: math.exp
// CHECK: scf.for {{.*}} -> (vector<64xf32>, vector<64xf32>) {
// CHECK: memref.prefetch %arg2[
// CHECK: return
// With the registers of AVX2: tiles of six, by one block or one vector.
// NARROW: func.func private @[[PREFILL]](
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW: math.exp
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// NARROW: func.func private @[[DECODE]](
// NARROW: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
