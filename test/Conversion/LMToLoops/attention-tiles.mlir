// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-amx | FileCheck %s
// RUN: not sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: 'lm.attention' op multiplies by X86_AMX_BF16, which x86-64-avx512-bf16 does not have

// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-amx -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+amx-tile,+amx-bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+amx-tile,+amx-bf16 -relocation-model=pic -o %t.s
// RUN: FileCheck %s --check-prefix=ASM < %t.s

// Tiles of 16 rows are configured where queries are loaded; keys are packed into
// tiles of 16 by 32, for 64 keys at once, and so are values.
// CHECK-LABEL: func @attention
// CHECK: tile.configure %c16
// CHECK: vector.store %{{.*}} : memref<48x64xbf16>, vector<16xbf16>

// What fills up a step of two blocks is the last block once more.
// CHECK: arith.divui %{{.*}}, %c2
// CHECK: arith.minui
// CHECK: vector.store %{{.*}} : memref<8192xbf16>, vector<32xbf16>
// CHECK: call @X86_AMX_BF16_16x64_panel64(%{{.*}}, %false, %{{.*}}, %c16, %{{.*}})
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK: call @X86_AMX_BF16_16x64_panel64(

// Scores and values by tiles, none on the stack, softmax in vectors between them.
// ASM-LABEL: {{^}}attention:
// ASM: ldtilecfg
// ASM-NOT: ldtilecfg
// ASM-DAG: callq X86_AMX_BF16_16x64_panel64
// ASM-DAG: vscalefps
// ASM-LABEL: {{^}}X86_AMX_BF16_16x64_panel64:
// ASM-NOT: {{ldtilecfg|tilerelease|\(%rsp.*%tmm|%tmm.*\(%rsp}}
// ASM: # =>This Inner Loop
// ASM-NEXT: tileloadd
// ASM-COUNT-4: tdpbf16ps
// ASM-NOT: tdpbf16ps
// ASM: jb
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
