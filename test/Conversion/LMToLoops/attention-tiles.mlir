// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-amx -canonicalize -cse | FileCheck %s
// RUN: not sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: 'lm.attention' op multiplies by X86_AMX_BF16, which x86-64-avx512-bf16 does not have

// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-amx -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+amx-tile,+amx-bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+amx-tile,+amx-bf16 -relocation-model=pic -o %t.s
// RUN: FileCheck %s --check-prefix=ASM < %t.s

// Heads of which no number of pairs but 16 and 80 are tiles.
// RUN: sed 's/x1024xbf16/x2560xbf16/; s/x256xbf16/x640xbf16/g; s/32768/81920/' %s | sandwich-opt -lm-to-loops=target=x86-64-amx \
// RUN:   | FileCheck %s --check-prefix=WIDE
// Scales of integers are for scores in memory, not in tiles.
// RUN: sed 's/x1024xbf16/x1088xi8/' %s | sandwich-opt -lm-to-loops=target=x86-64-amx \
// RUN:   | FileCheck %s --check-prefix=WIDE
// WIDE: tile.multiply
// WIDE-NOT: x86vector.avx512.dot
// WIDE: tile.store {{[01]}}, %{{.*}} : memref<16x128xf32>

// Keys are packed in pairs of channels, values in pairs of tokens: a row of a tile is
// 16 of them. What fills up a step of two blocks is the last block once more.
// CHECK: func.func private @kernel.{{[0-9]+}}.matrix_attention(
// CHECK-DAG: %[[QUERIES:.*]] = memref.alloca() {{.*}} : memref<48x64xbf16>
// CHECK-DAG: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<48x2x32xf32>
// CHECK-DAG: %[[SCORES:.*]] = memref.alloca() {{.*}} : memref<16x128xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<2x32x64x2xbf16>
// CHECK-DAG: memref.alloca() {{.*}} : memref<2x64x32x2xbf16>
// CHECK: arith.minsi
// CHECK: vector.store %{{.*}} : memref<2x32x128xbf16, {{.*}}>, vector<32xbf16>

// Sums stay in tiles for all of K, and go from there to memory and back.
// CHECK: tile.configure %c16
// CHECK-NEXT: tile.zero 0
// CHECK: tile.zero 3
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %c32{{(_[0-9]+)?}} step %c16{{(_[0-9]+)?}} {
// CHECK: tile.load 4, %[[QUERIES]][%{{.*}}] stride %c64
// CHECK-NEXT: tile.load 6
// CHECK-NEXT: tile.multiply 0, 4, 6 products <bf16>
// CHECK-NEXT: tile.load 7
// CHECK-NEXT: tile.multiply 1, 4, 7 products <bf16>
// CHECK-NEXT: tile.load 6
// CHECK-NEXT: tile.multiply 2, 4, 6 products <bf16>
// CHECK-NEXT: tile.load 7
// CHECK-NEXT: tile.multiply 3, 4, 7 products <bf16>
// CHECK-NEXT: }
// CHECK: tile.store 0, %[[SCORES]]
// CHECK: tile.store 3, %[[SCORES]]
// CHECK: math.floor
// CHECK-COUNT-2: tile.load {{[01]}}, %[[SUMS]]
// CHECK-NOT: tile.store
// CHECK: tile.multiply 1, 4, 7 products <bf16>
// CHECK-NEXT: }
// CHECK-NEXT: tile.store 0, %[[SUMS]]
// CHECK-NEXT: tile.store 1, %[[SUMS]]

// Nothing but scores, weights and sums is in memory between them.
// ASM-LABEL: {{^}}kernel.{{[0-9]+}}.matrix_attention:
// ASM: tileloadd
// ASM-COUNT-8: tdpbf16ps
// ASM-NOT: tdpbf16ps
// ASM-COUNT-4: tilestored
// ASM-NOT: tilestored
// ASM: vrndscaleps
// ASM-COUNT-4: tdpbf16ps
// ASM-NOT: tdpbf16ps
// ASM: tilerelease
// ASM: retq

func.func @attention(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x2x2x1024xbf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32768 = arith.constant 32768 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  %y = memref.view %workspace[%c32768][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %blocks scale 1.25e-01
    schedules(<[?, ?] : <decode = [1, 2, 2], split = 1, prefill = [16, 4, 8], tiles = 3, instructions = X86_AMX_BF16>>) into %y
    : memref<?x256xbf16>, memref<?x2x2x2x1024xbf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}
