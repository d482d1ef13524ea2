// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.s
// The first loop takes several steps of K at once; a second one the rest.
// RUN: sed -n '/^X86_AVX512_BF16_12x32_ld2080_prefetch1:/,/func_end/p' %t.s | sed -n '/Inner Loop/,/\tj/p' > %t.loop12x32
// RUN: sed '/\tj/q' %t.loop12x32 | FileCheck %s --check-prefix=LOOP12X32
// RUN: not grep -e 'rsp' %t.loop12x32
// The input is read behind one pointer, at displacements.
// RUN: not grep -E 'vbroadcastss[^(]*\([^)]*,' %t.loop12x32
// RUN: sed -n '/^X86_AVX512_BF16_6x64_ld2080:/,/func_end/p' %t.s | sed -n '/Inner Loop/,/\tj/p' > %t.loop6x64
// RUN: sed '/\tj/q' %t.loop6x64 | FileCheck %s --check-prefix=LOOP6X64
// RUN: not grep -e 'rsp' %t.loop6x64
// Micro-kernels have no frame that rbp would point to: it may be any pointer.
// RUN: sed -n '/^X86_.*:/,/func_end/p' %t.s > %t.kernels
// RUN: grep -q -e vdpbf16ps %t.kernels
// RUN: not grep -e '%rsp, %rbp' %t.kernels

// Accumulators live in registers: the main loops multiply, load and prefetch,
// and touch no stack.
// LOOP12X32: prefetcht0
// LOOP12X32-COUNT-96: vdpbf16ps
// LOOP12X32-NOT: vdpbf16ps
// LOOP6X64-COUNT-96: vdpbf16ps
// LOOP6X64-NOT: vdpbf16ps

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @narrow(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [512, 32, 512], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}
func.func @wide(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 512], threads = [1, 2, 1], prefetch = [0, 0]>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}
