// RUN: sandwich-opt %s -gemm-dispatch | FileCheck %s

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0

// Equal neighbours are one; what no step is long enough for is dropped; who
// does not split K needs no partial sums.
// CHECK-LABEL: func @ranges
func.func @ranges(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  %sums_offset = arith.constant 33554432 : index
  %sums = memref.view %workspace[%sums_offset][] : memref<?xi8> to memref<1048576xi8>
  // CHECK: %[[TOKENS:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?x2048xbf16>
  // CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[TOKENS]], %c12
  // CHECK-NEXT: scf.if %[[FEW]] {
  // CHECK-NEXT: gemm.matmul {{.*}} schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 1, 4], prefetch = [8, 4096]>>) tokens_between [0, 12] partial_sums(
  // CHECK-NEXT: } else {
  // CHECK: arith.cmpi ule, %[[TOKENS]], %c100
  // CHECK: gemm.matmul {{.*}} schedules(<? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [64, 64, 2048], threads = [1, 4, 1], prefetch = [1, 0]>>) tokens_between [13, 100] into
  // CHECK: gemm.matmul {{.*}} schedules(<? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [128, 64, 2048], threads = [2, 2, 1], prefetch = [1, 0]>>) tokens_between [101, 512] into
  // CHECK-NOT: gemm.matmul
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<12 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 1, 4], prefetch = [8, 4096]>,
               50 : <micro_kernel = X86_AVX512_BF16_6x64, slice = [64, 64, 2048], threads = [1, 4, 1], prefetch = [1, 0]>,
               100 : <micro_kernel = X86_AVX512_BF16_6x64, slice = [64, 64, 2048], threads = [1, 4, 1], prefetch = [1, 0]>,
               512 : <micro_kernel = X86_AVX512_BF16_6x64, slice = [128, 64, 2048], threads = [2, 2, 1], prefetch = [1, 0]>,
               ? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 2048], threads = [1, 4, 1], prefetch = [1, 0]>>)
    partial_sums(%sums : memref<1048576xi8>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// Conditions halve the ranges: 4 of them nest two deep.
// CHECK-LABEL: func @halves
func.func @halves(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  // CHECK: arith.cmpi ule, %{{.*}}, %c20
  // CHECK-NEXT: scf.if
  // CHECK: arith.cmpi ule, %{{.*}}, %c10
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: tokens_between [0, 10]
  // CHECK-NEXT: else
  // CHECK-NEXT: tokens_between [11, 20]
  // CHECK: arith.cmpi ule, %{{.*}}, %c30
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: tokens_between [21, 30]
  // CHECK-NEXT: else
  // CHECK-NEXT: tokens_between [31, 512]
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<10 : <micro_kernel = X86_AVX512_BF16_1x32, slice = [10, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>,
               20 : <micro_kernel = X86_AVX512_BF16_2x32, slice = [20, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>,
               30 : <micro_kernel = X86_AVX512_BF16_3x32, slice = [30, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>,
               ? : <micro_kernel = X86_AVX512_BF16_4x32, slice = [512, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>>)
    into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// What is promised of the tokens leaves schedules out as well.
// CHECK-LABEL: func @promised
func.func @promised(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  // CHECK: arith.cmpi ule, %{{.*}}, %c20
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: X86_AVX512_BF16_2x32{{.*}} tokens_between [15, 20]
  // CHECK-NEXT: else
  // CHECK-NEXT: X86_AVX512_BF16_3x32{{.*}} tokens_between [21, 25]
  // CHECK-NOT: gemm.matmul
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<10 : <micro_kernel = X86_AVX512_BF16_1x32, slice = [10, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>,
               20 : <micro_kernel = X86_AVX512_BF16_2x32, slice = [20, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>,
               30 : <micro_kernel = X86_AVX512_BF16_3x32, slice = [30, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>,
               ? : <micro_kernel = X86_AVX512_BF16_4x32, slice = [512, 32, 2048], threads = [1, 1, 1], prefetch = [0, 0]>>)
    tokens_between [15, 25] into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}
