// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -split-input-file -verify-diagnostics

// A weight must be packed.
lm.weight @w : tensor<64x64xf32> from ["w"] at 0
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op needs a weight with a packing and a place: @w}}
  gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// A weight must have a place.
lm.weight @w : tensor<64x64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op needs a weight with a packing and a place: @w}}
  gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// So must a bias.
lm.weight @w : tensor<64x64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0
lm.weight @b : tensor<64xf32> from ["b"]
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op needs the place of weight @b in the artifact}}
  gemm.matmul %x, @w bias @b epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// And the norms of heads.
lm.weight @w : tensor<128x64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0
lm.weight @q : tensor<32xf32> from ["q"] at 32768
lm.weight @k : tensor<32xf32> from ["k"]
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %t = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  // expected-error @below {{'gemm.matmul' op needs the place of weight @k in the artifact}}
  gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : memref<?x32xf32>) cache(%cache : memref<?x2x1x2x512xf32>) slots(%slots : memref<?xi32>) query_norm @q key_norm @k epsilon 1.0 schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
