// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize | FileCheck %s --check-prefix=NEST
// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops | FileCheck %s
// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512bf16 | FileCheck %s --check-prefix=ASM

// Results go past the caches where they are aligned to cache lines, which shows
// when the program runs; a fence then keeps them before the next barrier.
// Prefetches have the hint that the schedule names.

// NEST-LABEL: func @aligned
// NEST: gemm.epilogue {{.*}} epilogue(<none>) non_temporal into
// CHECK-LABEL: func @aligned
// CHECK: call @X86_AVX512_BF16_12x32_ld2080_prefetch1_l2(
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK: scf.if
// CHECK: vector.store {{.*}}alignment = 64{{.*}}nontemporal = true
// CHECK: llvm.fence seq_cst
// CHECK: } else {
// CHECK-NOT: nontemporal
// CHECK: vector.store
// ASM-LABEL: sandwich_aligned:
// ASM-DAG: vmovntps
// ASM-DAG: {{mfence|lock}}
lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @aligned(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
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
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 2, 1], prefetch = [1, 0], hint = l2, stores = non_temporal>>)
    into %y : memref<?x2048xbf16, strided<[2080, 1]>> into memref<?x512xf32>
  return
}

// Rows that lie 520 floats apart are not all aligned.
// CHECK-LABEL: func @unaligned
// CHECK-NOT: nontemporal
// CHECK: return
func.func @unaligned(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %rows = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x520xf32>
  %y = memref.subview %rows[0, 0] [%tokens, 512] [1, 1] : memref<?x520xf32> to memref<?x512xf32, strided<[520, 1]>>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 2, 1], prefetch = [0, 0], stores = non_temporal>>)
    into %y : memref<?x2048xbf16> into memref<?x512xf32, strided<[520, 1]>>
  return
}

// CHECK-LABEL: func {{.*}}@X86_AVX512_BF16_12x32_ld2080_prefetch1_l2(
// CHECK: memref.prefetch {{.*}} locality<2>
// ASM-LABEL: X86_AVX512_BF16_12x32_ld2080_prefetch1_l2:
// ASM: prefetcht1
