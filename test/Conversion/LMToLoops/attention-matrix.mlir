// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 | FileCheck %s
// RUN: sed 's/, instructions = X86_AVX512_BF16//' %s | sandwich-opt -lm-to-loops=target=x86-64-avx512-bf16 | FileCheck %s --check-prefix=FMA
// RUN: not sandwich-opt %s -lm-to-loops=target=x86-64-avx512 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: 'lm.attention' op {{.*}}X86_AVX512_BF16
// RUN: sed 's/x1280xbf16/x1344xi8/g' %s | sandwich-opt -lm-to-loops=target=x86-64-avx512-bf16 | FileCheck %s --check-prefix=INT8

// Segments of several tokens by micro-kernels: 12 rows by two blocks of keys, and by
// 16 channels of the values at a time, as 80 are no multiple of 32. Queries and
// sums of three tiles, scores and weights of one, and a chunk's keys and values.

// CHECK-LABEL: func @attention
// CHECK-DAG: memref.alloca() {{.*}} : memref<36x80xbf16>
// CHECK-DAG: memref.alloca() {{.*}} : memref<36x80xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<12x64xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<12x64xbf16>
// CHECK-DAG: memref.alloca() {{.*}} : memref<5120xbf16>
// CHECK-DAG: memref.alloca() {{.*}} : memref<5120xbf16>

// All tiles of a piece load their queries.
// CHECK: arith.cmpi ne
// CHECK-NEXT: scf.if
// CHECK: scf.for %{{.*}} = %[[FIRST:.*]] to %[[END:.*]] step %c1{{(_[0-9]+)?}} {
// CHECK: vector.store %{{.*}}, %[[QUERIES:.*]][%{{.*}}] : memref<36x80xbf16>, vector<16xbf16>

// Chunks of four blocks, each of which is packed once: pairs of channels of keys,
// as they lie in the cache, and pairs of tokens of values.
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{(_[0-9]+)?}} {
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %{{.*}} to %c80{{(_[0-9]+)?}} step %c2{{(_[0-9]+)?}} {
// CHECK: vector.load %{{.*}} : memref<?x2x2x2x1280xbf16>, vector<32xbf16>
// CHECK-NOT: vector.interleave
// CHECK: vector.store %{{.*}}, %[[KEYS:.*]][%{{.*}}] : memref<5120xbf16>, vector<32xbf16>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c16{{(_[0-9]+)?}} step %c2{{(_[0-9]+)?}} {
// CHECK-COUNT-5: vector.interleave
// CHECK: vector.store %{{.*}}, %[[VALUES:.*]][%{{.*}}] : memref<5120xbf16>, vector<32xbf16>

// Then each tile adds it: of the next chunk, a part is asked for, into L2,
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1{{(_[0-9]+)?}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2{{(_[0-9]+)?}} {
// CHECK: memref.prefetch {{.*}}, read, locality<2>, data
// scores are overwritten, later positions masked,
// CHECK: call @X86_AVX512_BF16_12x32_ld80(%{{.*}}, %false, %{{.*}})
// CHECK: arith.cmpi slt
// CHECK-NEXT: vector.load
// CHECK: arith.select
// maxima found, and what was summed before rescaled if one of them grew;
// CHECK: vector.reduction <or>
// CHECK: scf.if
// exponentials are of two, and what multiplies values is bf16,
// CHECK-NOT: math.exp
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK: vector.store %{{.*}}, %[[SUMS:.*]][%{{.*}}] : memref<36x80xf32>, vector<16xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK: vector.store %{{.*}} : memref<12x64xbf16>, vector<16xbf16>
// CHECK-NOT: math.exp
// and sums of the first chunk overwrite what is there.
// CHECK-COUNT-5: call @X86_AVX512_BF16_12x16_ld64_panel16(

// Segments of one token follow, by a kernel of FMA.
// CHECK: arith.cmpi eq
// CHECK: call @kernel.{{[0-9]+}}.attention(
// The micro-kernels are those of matmuls.
// CHECK: func.func private @X86_AVX512_BF16_12x32_ld80(
// CHECK: func.func private @X86_AVX512_BF16_12x16_ld64_panel16(

// Without instructions, three tiles meet a chunk as well, with scores in f32.
// FMA-LABEL: func @attention
// FMA: call @[[PREFILL:kernel.*.attention]](
// FMA: func.func private @[[PREFILL]](
// FMA-DAG: memref.alloca() {{.*}} : memref<1x36x80xf32>
// FMA-DAG: memref.alloca() {{.*}} : memref<12x4x16xf32>
// FMA: math.exp
// FMA: return
// Integers are packed as bf16, and their scales beside them, where none was written
// 0 for a value; scores, and weights before they are rounded, are multiplied by them.
// INT8-LABEL: func @attention
// INT8-DAG: memref.alloca() {{.*}} : memref<5120xbf16>
// INT8-DAG: memref.alloca() {{.*}} : memref<64xf32>
// INT8: %[[KEY:.*]] = vector.load %{{.*}} : memref<?x2x2x2x1344xi8>, vector<16xi8>
// INT8: %[[WIDE:.*]] = arith.extsi %[[KEY]] : vector<16xi8> to vector<16xi32>
// INT8: %[[FLOAT:.*]] = arith.sitofp %[[WIDE]] : vector<16xi32> to vector<16xf32>
// INT8: arith.truncf %[[FLOAT]] : vector<16xf32> to vector<16xbf16>
// INT8: vector.interleave
// INT8: %[[BYTES:.*]] = vector.load %{{.*}}, %c1280{{.*}}] : memref<?x2x2x2x1344xi8>, vector<64xi8>
// INT8: %[[SCALES:.*]] = vector.bitcast %[[BYTES]] : vector<64xi8> to vector<16xf32>
// INT8: vector.store %[[SCALES]], %[[KEYSCALES:.*]][%{{.*}}] : memref<64xf32>, vector<16xf32>
// INT8: %[[WRITTEN:.*]] = arith.select %{{.*}} : vector<16xi1>, vector<16xf32>
// INT8: vector.store %[[WRITTEN]], %[[VALUESCALES:.*]][%{{.*}}] : memref<64xf32>, vector<16xf32>
// INT8: call @X86_AVX512_BF16_12x32_ld80(
// INT8: vector.load %[[KEYSCALES]]
// INT8: vector.load %[[KEYSCALES]]
// INT8: arith.mulf
// INT8: vector.load %[[VALUESCALES]]
// INT8: %[[WEIGHT:.*]] = arith.mulf
// INT8: arith.truncf %[[WEIGHT]] : vector<16xf32> to vector<16xbf16>
// INT8: call @X86_AVX512_BF16_12x16_ld64_panel16(

func.func @attention(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1280xbf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x160xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125
    schedules(<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = [12, 2, 4], tiles = 3, instructions = X86_AVX512_BF16>>) into %q
    : memref<?x160xbf16>, memref<?x2x2x2x1280xbf16>, memref<?x4xi32>, memref<?xi32> into memref<?x160xbf16>
  return
}
