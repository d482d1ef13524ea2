// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma -relocation-model=pic -o %t.s
// The first loop takes several steps of K at once; a second one the rest.
// RUN: sed -n '/^X86_AVX2_F32_6x16_ld2064:/,/func_end/p' %t.s | sed -n '/Inner Loop/,/\tj/p' > %t.avx2
// RUN: sed '/\tj/q' %t.avx2 | FileCheck %s --check-prefix=AVX2
// RUN: not grep -e 'rsp' -e 'rbp' %t.avx2
// The input is read behind one pointer, at displacements.
// RUN: not grep -E 'vbroadcastss[^(]*\([^)]*,' %t.avx2

// AVX2-COUNT-48: vfmadd{{[0-9]+}}ps {{.*}}%ymm
// AVX2-NOT: vfmadd

lm.weight @w : tensor<512x2048xf32> from ["w"] packing #gemm.packing<panel = 16, tile = 16, k_step = 1, k_pack = 1> at 0
func.func @avx2(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [96, 32, 128], threads = [1, 2, 1], prefetch = [0, 0]>>)
    into %y : memref<?x2048xf32, strided<[2064, 1]>> into memref<?x512xf32>
  return
}
