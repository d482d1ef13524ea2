// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 -canonicalize -cse | FileCheck %s
// RUN: sed 's/, instructions = X86_AVX512_BF16//' %s | sandwich-opt -lm-to-loops=target=x86-64-avx512-bf16 | FileCheck %s --check-prefix=FMA
// RUN: not sandwich-opt %s -lm-to-loops=target=x86-64-avx512 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: 'lm.attention' op {{.*}}X86_AVX512_BF16
// RUN: sed 's/x1280xbf16/x1344xi8/g' %s | sandwich-opt -lm-to-loops=target=x86-64-avx512-bf16 -canonicalize -cse | FileCheck %s --check-prefix=INT8

// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+fma \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+fma -relocation-model=pic -o %t.s
// RUN: awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); dots = gsub(/vdpbf16ps/, "&", loop[1]); if (dots) print loop[1] "\ndots: " dots }' %t.s > %t.loops
// RUN: FileCheck %s --check-prefix=ASM < %t.loops
// RUN: not grep 'vmov.*[re][sb]p)' %t.loops

// Segments of several tokens by the kernel for matrices, 12 rows by two blocks of
// keys, or by 8 channels of the values: 40 pairs are no multiple of 16 or 24. Queries
// and sums of three tiles, scores and weights of one, and a chunk's keys and values.

// CHECK-LABEL: func @attention
// CHECK: call @[[MATRICES:kernel.*.matrix_attention]](
// Segments of one token follow, by the kernel of FMA.
// CHECK: arith.cmpi eq
// CHECK: call @kernel.{{[0-9]+}}.attention(

// CHECK: func.func private @[[MATRICES]](
// CHECK-DAG: %[[QUERIES:.*]] = memref.alloca() {{.*}} : memref<36x80xbf16>
// CHECK-DAG: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<36x2x40xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<12x64xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<12x64xbf16>
// CHECK-DAG: %[[KEYS:.*]] = memref.alloca() {{.*}} : memref<2x40x32x2xbf16>
// CHECK-DAG: %[[VALUES:.*]] = memref.alloca() {{.*}} : memref<2x32x40x2xbf16>

// Chunks of four blocks, each of which is packed once: pairs of channels of keys,
// as they lie in the cache, and pairs of tokens of values.
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4{{(_[0-9]+)?}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %c40{{(_[0-9]+)?}} step %c1{{(_[0-9]+)?}} {
// CHECK: %[[PAIRS:.*]] = vector.load %{{.*}} : memref<?x?x40x32xbf16, {{.*}}>, vector<32xbf16>
// CHECK-NOT: vector.interleave
// CHECK: memref.transpose %[[KEYS]]
// CHECK: vector.store %[[PAIRS]], %{{.*}} : memref<2x40x64xbf16, {{.*}}>, vector<32xbf16>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c8{{(_[0-9]+)?}} step %c1{{(_[0-9]+)?}} {
// CHECK: memref.transpose %[[VALUES]]
// CHECK: vector.interleave %{{.*}} : vector<16xbf16> -> vector<32xbf16>

// Then each tile adds it: pairs of queries are broadcast from where they are,
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c12{{(_[0-9]+)?}} {
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %{{.*}} to %c40{{(_[0-9]+)?}} step %c2{{(_[0-9]+)?}} iter_args({{.*}}) -> (vector<32xf32>, {{.*}}) {
// CHECK: %[[TWO:.*]] = vector.load %[[QUERIES]]{{.*}}, vector<2xbf16>
// CHECK: %[[WORD:.*]] = vector.bitcast %[[TWO]] : vector<2xbf16> to vector<1xi32>
// CHECK: %[[PAIR:.*]] = vector.extract %[[WORD]][0]
// CHECK: %[[ALL:.*]] = vector.broadcast %[[PAIR]] : i32 to vector<16xi32>
// CHECK: vector.bitcast %[[ALL]] : vector<16xi32> to vector<32xbf16>
// CHECK-COUNT-48: x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
// CHECK-NOT: x86vector.avx512.dot
// later positions masked,
// CHECK: arith.cmpi slt, %{{.*}} : vector<16xi32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %cst{{.*}} : vector<16xi1>, vector<16xf32>
// exponentials are of two, and what multiplies values is bf16.
// CHECK: math.floor %{{.*}} : vector<16xf32>
// CHECK: %[[WEIGHT:.*]] = arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: vector.store %[[WEIGHT]], %{{.*}} : memref<12x64xbf16>, vector<16xbf16>
// CHECK: vector.load %[[SUMS]]{{.*}}, vector<8xf32>
// CHECK-COUNT-24: x86vector.avx512.dot %{{.*}} : vector<16xbf16> -> vector<8xf32>
// CHECK: return

// Registers of sums stay: 24 of scores, of which each turn adds two pairs to, and 12
// halves of values, of even and of odd channels.
// ASM: dots: 48
// ASM: dots: 24
// ASM: dots: 24
// ASM-NOT: dots

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
// 80 channels are 5 times 16.
// INT8: func.func private @kernel.{{[0-9]+}}.matrix_attention(
// INT8-DAG: memref.alloca() {{.*}} : memref<2x40x32x2xbf16>
// INT8-DAG: memref.alloca() {{.*}} : memref<1x32x80x2xbf16>
// INT8-DAG: memref.alloca() {{.*}} : memref<64xf32>
// INT8: %[[KEY:.*]] = vector.load %{{.*}}, vector<16xi8>
// INT8: arith.sitofp %[[KEY]] : vector<16xi8> to vector<16xbf16>
// INT8: vector.interleave
// INT8: vector.store %{{.*}} : memref<64xf32>, vector<16xf32>
// INT8: arith.cmpi sle, %{{.*}} : vector<16xi32>
// INT8: arith.select %{{.*}} : vector<16xi1>, vector<16xf32>
// INT8-NEXT: vector.store %{{.*}} : memref<64xf32>, vector<16xf32>
// INT8-COUNT-48: x86vector.avx512.dot
// INT8: arith.mulf %{{.*}} : vector<16xf32>
// INT8: math.floor
// INT8: %[[SCALED:.*]] = arith.mulf %{{.*}} : vector<16xf32>
// INT8: arith.truncf %[[SCALED]] : vector<16xf32> to vector<16xbf16>
// INT8: x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>

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
