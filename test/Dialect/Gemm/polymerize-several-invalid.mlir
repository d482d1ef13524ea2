// RUN: sandwich-opt %s -gemm-polymerize -split-input-file -verify-diagnostics

// The passes have an order.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op has several schedules; run gemm-dispatch first}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<4 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0]>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0]>>)
    into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}
