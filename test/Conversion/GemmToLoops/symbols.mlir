// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops | FileCheck %s

// Whatever has the name of a micro-kernel is not called in its place.

lm.weight @w : tensor<64x64xf32> from ["w"] packing #gemm.packing<panel = 16, tile = 16, k_step = 1, k_pack = 1> at 0
// CHECK: func.func private @X86_AVX2_F32_1x16_ld64()
func.func private @X86_AVX2_F32_1x16_ld64()

// CHECK-LABEL: func @program
// CHECK: call @X86_AVX2_F32_1x16_ld64_0(
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 1, max_logit_rows = 1, workspace_bytes = 256>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_1x16, slice = [1, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>)
    into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
// CHECK: func.func private @X86_AVX2_F32_1x16_ld64_0(%{{.*}}: memref<?x?xf32, strided<[64, 1], offset: ?>>
