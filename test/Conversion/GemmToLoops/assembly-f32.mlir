// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma,+avx512f \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma,+avx512f -relocation-model=pic -o %t.s
// The first loop takes several steps of K at once; a second one the rest.
// RUN: sed -n '/^X86_AVX512_F32_12x32_ld2064_widen:/,/func_end/p' %t.s | sed -n '/Inner Loop/,/\tj/p' > %t.widen
// RUN: sed '/\tj/q' %t.widen | FileCheck %s --check-prefix=WIDEN
// RUN: not grep -e 'rsp' -e 'rbp' %t.widen

// bf16 weights are widened in registers, once for all rows.
// WIDEN-COUNT-8: vpslld
// WIDEN-NOT: vpslld

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0
func.func @avx512(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2064xf32>
  %x = memref.subview %input[0, 0] [%tokens, 2048] [1, 1] : memref<?x2064xf32> to memref<?x2048xf32, strided<[2064, 1]>>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_F32_12x32, slice = [512, 32, 512], threads = [1, 2, 1], prefetch = [0, 0]>>)
    into %y : memref<?x2048xf32, strided<[2064, 1]>> into memref<?x512xf32>
  return
}
