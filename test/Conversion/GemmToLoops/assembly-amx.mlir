// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512bf16,+amx-tile,+amx-bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512bf16,+amx-tile,+amx-bf16 -relocation-model=pic -o %t.s
// RUN: FileCheck %s < %t.s

// One configuration for the whole step, also where several matmuls have the same
// rows: the second asks whether they are the same. Given back where it ends.
// CHECK-LABEL: {{^}}amx:
// CHECK: ldtilecfg
// CHECK-NOT: ldtilecfg
// CHECK: callq X86_AMX_BF16_32x32_packed_stream_input
// CHECK: cmpq
// CHECK: ldtilecfg
// CHECK-NOT: ldtilecfg
// CHECK: callq X86_AMX_BF16_16x64_prefetch32_l2_stream_weight
// CHECK: tilerelease
// CHECK: retq

// Functions for whole pairs of tiles and for a single one; no tile configured,
// given back or on the stack. Each K step of 32 x 32 is four loads and four
// multiplications.
// CHECK-LABEL: {{^}}X86_AMX_BF16_16x32_packed_stream_input:
// CHECK-NOT: {{ldtilecfg|tilerelease|\(%rsp.*%tmm|%tmm.*\(%rsp}}
// CHECK: retq
// CHECK-LABEL: {{^}}X86_AMX_BF16_32x32_packed_stream_input:
// CHECK: tileloaddt1 {{.*}} %tmm0
// CHECK: tilezero %tmm0
// CHECK: .LBB{{.*}}: # =>This Inner Loop
// CHECK-NEXT: tileloaddt1 {{.*}} %tmm4
// CHECK-NEXT: tileloaddt1 {{.*}} %tmm5
// CHECK-NEXT: tileloadd {{.*}} %tmm6
// CHECK-NEXT: tdpbf16ps %tmm6, %tmm4, %tmm0
// CHECK-NEXT: tdpbf16ps %tmm6, %tmm5, %tmm2
// CHECK-NOT: tileload
// CHECK: tileloadd {{.*}} %tmm7
// CHECK-NEXT: tdpbf16ps %tmm7, %tmm4, %tmm1
// CHECK-NEXT: tdpbf16ps %tmm7, %tmm5, %tmm3
// CHECK-NOT: {{tileload|tdp}}
// CHECK: jb
// CHECK-NOT: {{ldtilecfg|tilerelease|tileload}}
// CHECK-COUNT-4: tilestored
// CHECK: retq
// CHECK-LABEL: {{^}}X86_AMX_BF16_16x64_prefetch32_l2_stream_weight:
// CHECK: .LBB{{.*}}: # =>This Inner Loop
// CHECK-NEXT: tileloadd {{.*}} %tmm4
// CHECK-NEXT: tileloaddt1 {{.*}} %tmm6
// CHECK-NEXT: tdpbf16ps %tmm6, %tmm4, %tmm0
// CHECK-NEXT: prefetcht1
// CHECK: tdpbf16ps %tmm7, %tmm4, %tmm3
// CHECK: jb
// CHECK-NOT: {{ldtilecfg|tilerelease}}

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2> at 0
func.func @amx(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2080xbf16>
  %x = memref.subview %input[0, 0] [%tokens, 2048] [1, 1] : memref<?x2080xbf16> to memref<?x2048xbf16, strided<[2080, 1]>>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AMX_BF16_32x32, slice = [256, 64, 2048], threads = [1, 2, 1], prefetch = [0, 0], k_chunk = 512, input = packed, streamed = input>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  phase.barrier %team
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AMX_BF16_16x64, slice = [16, 64, 2048], threads = [1, 2, 1], prefetch = [8, 768], hint = l2, streamed = weight>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}
