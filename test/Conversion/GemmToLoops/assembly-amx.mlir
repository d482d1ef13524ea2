// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512bf16,+amx-tile,+amx-bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512bf16,+amx-tile,+amx-bf16 -relocation-model=pic -o %t.s
// RUN: sed -n '/^X86_AMX_BF16_32x32_ld2080:/,/func_end/p' %t.s | sed -n '/Inner Loop/,/\tj/p' > %t.amx32
// RUN: FileCheck %s --check-prefix=AMX32 < %t.amx32
// RUN: not grep tilestored %t.amx32
// RUN: sed -n '/^X86_AMX_BF16_21x32_ld2080:/,/func_end/p' %t.s | sed -n '/Inner Loop/,/\tj/p' > %t.amx21
// RUN: FileCheck %s --check-prefix=AMX21 < %t.amx21
// RUN: not grep tilestored %t.amx21

// Two tiles of the input, two of the weight, four of sums that stay in
// registers; rows that are no multiple of 16 are two tiles of the same height.
// AMX32: tileloadd
// AMX32: tileloadd
// AMX32-COUNT-4: tdpbf16ps
// AMX32-NOT: tdpbf16ps
// AMX21: tileloadd
// AMX21-COUNT-4: tdpbf16ps
// AMX21-NOT: tdpbf16ps

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
    schedules(<? : <micro_kernel = X86_AMX_BF16_32x32, slice = [512, 32, 1024], threads = [1, 2, 1], prefetch = [0, 0]>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}
