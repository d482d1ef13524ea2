// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops | FileCheck %s

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0

// One strip, all of K, one kernel for each number of rows; then blocks of at
// most 512 tokens and 512 k, where balanced strips have 6 to 12 rows.
// CHECK-LABEL: func @two_schedules
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<65600xi8>
// CHECK: arith.cmpi ule, %{{.*}}, %c12
// CHECK: scf.if
// CHECK: scf.index_switch
// CHECK: case 1 {
// CHECK: call @X86_AVX512_BF16_1x32_ld2080_prefetch8(
// CHECK: case 11 {
// CHECK: default {
// CHECK: call @X86_AVX512_BF16_12x32_ld2080_prefetch8(
// CHECK: } else {
// CHECK: scf.index_switch
// CHECK-NEXT: case 6 {
// CHECK: call @X86_AVX512_BF16_6x32_ld2080_prefetch1(
// CHECK: default {
// CHECK: call @X86_AVX512_BF16_12x32_ld2080_prefetch1(
func.func @two_schedules(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<12 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 2, 1], prefetch = [8, 4096]>,
               ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [512, 32, 512], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}

// Another micro-kernel in the schedule is other code, here for two panels at
// once, and for the one that a thread's share may end with.
// CHECK-LABEL: func @another_kernel
// CHECK-NOT: scf.if
// CHECK: call @X86_AVX512_BF16_6x64_ld2080_prefetch1(
// CHECK: call @X86_AVX512_BF16_6x32_ld2080_prefetch1(
func.func @another_kernel(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 512], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}

// Schedules for more tokens than the program serves are left out.
// CHECK-LABEL: func @unreachable_schedule
// CHECK-NOT: X86_AVX512_BF16_{{[0-9]+}}x64
// CHECK: return
func.func @unreachable_schedule(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<512 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [512, 32, 512], threads = [1, 2, 1], prefetch = [1, 0]>, ? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 512], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}

// The kernels: one accumulator for each row and vector of columns, four packed
// k a step.
// CHECK-LABEL: func private @X86_AVX512_BF16_1x32_ld2080_prefetch8(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK-SAME: no_inline
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, index)
// CHECK-COUNT-8: memref.prefetch
// CHECK-COUNT-8: x86vector.avx512.dot
// CHECK-NOT: x86vector
// CHECK: scf.yield
